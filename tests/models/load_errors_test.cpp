// What a wrong checkpoint or configuration says, for every family: one error that names all.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "checkpoint/safetensors.h"
#include "core/check.h"
#include "models/golden_model.h"
#include "models/load_model.h"
#include "models/registry.h"
#include "support/expect_error.h"
#include "support/json.h"
#include "support/temporary_directory.h"

namespace fovea {
namespace {

using fovea::test::Json;

/// A golden checkpoint of each family.
class LoadErrors : public ::testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] const std::string& folder() const { return GetParam(); }

  const checkpoint::HfConfig files_ = checkpoint::read_hf_config(folder());
};

/// The names of all tensors that the tower asks for.
std::vector<std::string> names_of(const ModelReport& report) {
  std::vector<std::string> names;
  for (const TensorReport& tensor : report.tensors) names.push_back(tensor.name);
  return names;
}

/// Writes the checkpoint in `from` without the tensors `missing`, and with one value more in
/// `misshapen`.
void write_damaged(const std::string& from, const std::string& to,
                   const std::vector<std::string>& missing, const std::string& misshapen) {
  const checkpoint::SafetensorsFile file(from + "/model.safetensors");
  std::vector<checkpoint::OutputTensor> tensors;
  std::vector<std::byte> longer;
  for (const checkpoint::TensorEntry& entry : file.header().tensors) {
    if (std::ranges::find(missing, entry.name) != missing.end()) continue;
    ConstTensorView view = file.tensor(entry.name);
    if (entry.name == misshapen) {
      longer.resize(view.bytes() + size_of(view.dtype));
      view = {longer.data(), view.dtype, {view.shape.elements() + 1}};
    }
    tensors.push_back({entry.name, view});
  }
  checkpoint::write_safetensors(to, tensors, {});
}

TEST_P(LoadErrors, MissingAndMisshapenTensorsAreAllNamedAtOnce) {
  const ModelReport intact =
      check_model(files_, {}, checkpoint::WeightSource::open(folder())).report;
  const std::vector<std::string> names = names_of(intact);
  // The first name tells the folder of the tower.
  const std::vector<std::string> missing{names[1], names[names.size() / 2]};
  const std::string& misshapen = names[names.size() - 2];

  const test::TemporaryDirectory damaged;
  write_damaged(folder(), damaged / "model.safetensors", missing, misshapen);
  const auto weights = checkpoint::WeightSource::open(damaged.path());
  const ModelReport report = check_model(files_, {}, weights).report;
  EXPECT_EQ(names_of(report), names) << "the tower asks for the same tensors";
  const std::string count = cat("3 of ", names.size(), " tensors are missing or misshapen: ");
  for (const std::string& part :
       {damaged.path() + ": checkpoint does not fit its config.json: " + count,
        missing[0] + " missing, expected [", missing[1] + " missing, expected [",
        misshapen + " has shape ["}) {
    test::expect_error(ErrorCode::kNotFound, part,
                       [&] { throw_if_incomplete(report, files_, weights); });
  }
}

/// Families whose reference has its activation in the code, whatever the file says.
bool has_fixed_activation(std::string_view architecture) {
  constexpr auto kFixed = std::to_array<std::string_view>(
      {"KimiVLForConditionalGeneration", "Llama4ForConditionalGeneration", "DeepseekOCRForCausalLM",
       "DeepseekOCR2ForCausalLM", "DeepseekOcr2ForConditionalGeneration",
       "DeepseekVLV2ForCausalLM"});
  return std::ranges::find(kFixed, architecture) != kFixed.end();
}

TEST_P(LoadErrors, AnUnknownActivationIsNamedWithThoseThatAreKnown) {
  Json config = Json::parse(test::read_text(folder() + "/config.json"));
  const std::string around = config.contains("thinker_config") ? "thinker_config" : "";
  Json& vision = (around.empty() ? config : config[around])["vision_config"];
  const std::string key = vision.contains("hidden_activation") ? "hidden_activation" : "hidden_act";
  vision[key] = "relu6";
  checkpoint::HfConfig files = checkpoint::read_hf_config(folder());
  files.config = JsonDocument::parse(config.dump(), "config.json");
  const auto plan = [&] { (void)plan_model(files, {}); };
  if (has_fixed_activation(known_architecture(files))) {
    EXPECT_NO_THROW(plan());
    return;
  }
  test::expect_error(ErrorCode::kUnsupported,
                     cat("config.json: ", around, around.empty() ? "" : ".", "vision_config.", key,
                         ": expected gelu_pytorch_tanh, gelu_new, gelu, quick_gelu, silu, swish or "
                         "relu2, got relu6"),
                     plan);
}

INSTANTIATE_TEST_SUITE_P(Models, LoadErrors, ::testing::ValuesIn(test::supported_golden_models()),
                         [](const auto& folder) {
                           return std::filesystem::path(folder.param).filename().string();
                         });

}  // namespace
}  // namespace fovea
