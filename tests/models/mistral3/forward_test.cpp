// Rows of the architectures that share the tower of Mistral 3.
#include <gtest/gtest.h>

#include <fstream>

#include "checkpoint/safetensors.h"
#include "models/golden_model.h"
#include "support/json.h"
#include "support/temporary_directory.h"

namespace fovea::mistral3 {
namespace {

/// The name of a tensor of Mistral 3 in a checkpoint of LightOnOCR.
std::string light_on_name(std::string name) {
  for (const auto& [from, to] : {std::pair("vision_tower.", "model.vision_encoder."),
                                 std::pair("multi_modal_projector.", "model.vision_projection.")}) {
    if (name.starts_with(from)) name.replace(0, std::string_view(from).size(), to);
  }
  return name;
}

/// A golden checkpoint of Mistral 3 as one of LightOnOCR.
void write_light_on_ocr(const std::string& from, const test::TemporaryDirectory& to) {
  test::Json config = test::Json::parse(test::read_text(from + "/config.json"));
  config["architectures"][0] = "LightOnOCRForConditionalGeneration";
  std::ofstream(to / "config.json") << config.dump();
  const checkpoint::SafetensorsFile file(from + "/model.safetensors");
  std::vector<checkpoint::OutputTensor> tensors;
  for (const checkpoint::TensorEntry& entry : file.header().tensors) {
    tensors.push_back({light_on_name(entry.name), file.tensor(entry.name)});
  }
  checkpoint::write_safetensors(to / "model.safetensors", tensors, {});
}

TEST(Mistral3Forward, LightOnOcrHasTheSameRowsUnderOtherNames) {
  const auto folders = test::golden_folders("mistral3", "model.safetensors");
  if (folders.empty()) GTEST_SKIP() << "no folder mistral3; set FOVEA_GOLDEN_DIR";
  for (const std::string& folder : folders) {
    const test::TemporaryDirectory renamed;
    write_light_on_ocr(folder, renamed);
    const test::GoldenModel mistral(folder);
    const test::GoldenModel light_on(renamed.path());
    const std::vector<PreparedItem> items = test::random_items(mistral);
    EXPECT_EQ(light_on.run_alone(test::pointers(items)), mistral.run_alone(test::pointers(items)));
  }
}

}  // namespace
}  // namespace fovea::mistral3
