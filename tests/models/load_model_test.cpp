// From a directory to a model: planned, checked and loaded.
#include "models/load_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include "core/check.h"

#include "checkpoint/safetensors.h"
#include "checkpoint/safetensors_bytes.h"
#include "core/check.h"
#include "device/cpu/cpu_device.h"
#include "models/config_files.h"
#include "ops/cpu/cpu_kernels.h"
#include "support/expect_error.h"
#include "support/golden.h"
#include "support/temporary_directory.h"

namespace fovea {
namespace {

/// A tower of one block, all sizes as small as they may be.
checkpoint::HfConfig small_files() {
  return test::config_files({.config = R"({"architectures": ["Qwen3VLForConditionalGeneration"],
      "vision_config": {"depth": 1, "hidden_size": 16, "num_heads": 2, "intermediate_size": 8,
                        "out_hidden_size": 4, "num_position_embeddings": 4,
                        "deepstack_visual_indexes": [0]}})"});
}

/// A checkpoint with these tensors, all [2].
checkpoint::WeightSource checkpoint_with(const test::TemporaryDirectory& folder,
                                         const std::vector<std::string>& names) {
  const std::vector<float> values(2);
  std::vector<checkpoint::OutputTensor> tensors;
  for (const std::string& name : names) {
    tensors.push_back(
        {name, {reinterpret_cast<const std::byte*>(values.data()), DType::kF32, {2}}});
  }
  checkpoint::write_safetensors(folder / "model.safetensors", tensors, {});
  return checkpoint::WeightSource::open(folder.path());
}

std::string problem_of(const ModelReport& report, const std::string& name) {
  const auto entry = std::ranges::find(report.tensors, name, &TensorReport::name);
  return entry == report.tensors.end() ? "not asked for" : entry->problem;
}

TEST(PlanModel, PlansWithoutACheckpoint) {
  const auto planner = plan_model(small_files(), {});
  EXPECT_EQ(planner->graph_spec().out_width, 8);
  EXPECT_GT(planner->processor().plan_image(640, 480).spec.out_rows, 0);
}

TEST(PlanModel, RefusesUnknownArchitectures) {
  test::expect_error(ErrorCode::kUnsupported, "architecture \"NoSuchModel\" is not supported", [] {
    (void)plan_model(test::config_files({.config = R"({"architectures": ["NoSuchModel"]})"}), {});
  });
}

TEST(CheckModel, DescribesTheTower) {
  const CheckedModel checked = check_model(small_files(), {}, checkpoint::WeightSource::dummy(0));
  const ModelReport& report = checked.report;
  EXPECT_EQ(report.architecture, "Qwen3VLForConditionalGeneration");
  EXPECT_EQ(report.family, "qwen3_vl");
  EXPECT_EQ(report.hidden, 4);
  EXPECT_EQ(report.deepstack_levels, 1);
  EXPECT_EQ(report.width, 8);
  EXPECT_TRUE(report.images);
  EXPECT_TRUE(report.videos);
  auto facts = checked.planner->facts();
  EXPECT_FALSE(facts.empty());
  facts.emplace_back("options of an image", "size, min_pixels, max_pixels");
  facts.emplace_back("options of a video", "size, fps, num_frames");
  EXPECT_EQ(report.facts, facts);
  std::int64_t parameters = 0;
  for (const TensorReport& tensor : report.tensors) {
    std::int64_t elements = 1;
    for (const std::int64_t size : tensor.shape) elements *= size;
    parameters += elements;
  }
  EXPECT_EQ(report.parameters, parameters);
}

TEST(CheckModel, AFamilyOfImagesTakesNoVideos) {
  const auto files = checkpoint::read_hf_config(test::golden_folder("deepseek_ocr", "config.json"));
  const ModelReport report = check_model(files, {}, checkpoint::WeightSource::dummy(0)).report;
  EXPECT_TRUE(report.images);
  EXPECT_FALSE(report.videos);
  EXPECT_EQ(report.deepstack_levels, 0);
  EXPECT_EQ(report.tensors.front().name.substr(0, 16), "model.sam_model.") << "no folder";
}

TEST(CheckModel, DummyWeightsFitUnderThePublishedPrefix) {
  const auto weights = checkpoint::WeightSource::dummy(0);
  const ModelReport report = check_model(small_files(), {}, weights).report;
  EXPECT_EQ(problem_of(report, "model.visual.patch_embed.proj.weight"), "");
  EXPECT_NO_THROW(throw_if_incomplete(report, small_files(), weights));
}

TEST(CheckModel, ReportsWhatIsMissingUnderThePrefixOfTheCheckpoint) {
  const test::TemporaryDirectory folder;
  const auto weights = checkpoint_with(
      folder, {"thinker.visual.merger.norm.weight", "thinker.visual.patch_embed.proj.weight"});
  const CheckedModel checked = check_model(small_files(), {}, weights);
  EXPECT_EQ(checked.planner->graph_spec().out_width, 8) << "the planner works all the same";
  EXPECT_EQ(problem_of(checked.report, "thinker.visual.patch_embed.proj.weight"),
            "has shape [2] in model.safetensors, expected [16, 3, 2, 16, 16]");
  EXPECT_EQ(problem_of(checked.report, "thinker.visual.merger.norm.bias"),
            "missing, expected [16]");
}

TEST(CheckModel, FindsATowerInTheOtherFolderOfItsFamily) {
  const test::TemporaryDirectory folder;
  const auto weights = checkpoint_with(folder, {"vision_tower.patch_embed.proj.weight"});
  const auto files = test::config_files({.config = R"({"architectures":
      ["OpenCUAForConditionalGeneration"], "vision_config": {"hidden_size": 1280}})"});
  const ModelReport report = check_model(files, {}, weights).report;
  EXPECT_EQ(report.tensors.front().name, "vision_tower.patch_embed.proj.weight");
}

TEST(CheckModel, ReportsATensorWhoseRankIsAboveOurs) {
  const test::TemporaryDirectory folder;
  test::write_text(folder / "model.safetensors",
                   test::safetensors_bytes(R"({"visual.patch_embed.proj.weight": {"dtype": "F32",)"
                                           R"("shape": [1, 1, 1, 1, 1, 1, 1, 1, 2],)"
                                           R"("data_offsets": [0, 8]}})",
                                           8));
  const auto weights = checkpoint::WeightSource::open(folder.path());
  const ModelReport report = check_model(small_files(), {}, weights).report;
  EXPECT_EQ(problem_of(report, "visual.patch_embed.proj.weight"),
            "has shape [1, 1, 1, 1, 1, 1, 1, 1, 2] in model.safetensors, "
            "expected [16, 3, 2, 16, 16]");
}

TEST(CheckModel, RefusesACheckpointWithoutATower) {
  const test::TemporaryDirectory folder;
  const auto weights = checkpoint_with(folder, {"lm_head.weight", "patch_embed.weight"});
  test::expect_error(ErrorCode::kNotFound,
                     folder.path() +
                         ": checkpoint holds no vision tower: none of the 2 tensors in "
                         "model.safetensors ends with \"visual.patch_embed.proj.weight\"",
                     [&] { (void)check_model(small_files(), {}, weights); });
}

/// A report of `wrong` missing tensors and one that is there.
ModelReport report_with(int wrong) {
  ModelReport report;
  report.tensors.push_back({"tower.there", "F32", {1}, ""});
  for (int i = 0; i < wrong; ++i) {
    report.tensors.push_back(
        {std::string("tower.") + static_cast<char>('a' + i), "", {1}, "missing, expected [1]"});
  }
  return report;
}

TEST(ThrowIfIncomplete, NamesAllOfAFewProblems) {
  const auto weights = checkpoint::WeightSource::dummy(0);
  EXPECT_NO_THROW(throw_if_incomplete(report_with(0), small_files(), weights));
  test::expect_error(ErrorCode::kNotFound,
                     "2 of 3 tensors are missing or misshapen: tower.a missing, expected [1]; "
                     "tower.b missing, expected [1]",
                     [&] { throw_if_incomplete(report_with(2), small_files(), weights); });
}

TEST(ThrowIfIncomplete, NamesTheQuantizationOfTheCheckpoint) {
  const auto weights = checkpoint::WeightSource::dummy(0);
  checkpoint::HfConfig files = small_files();
  for (const auto& [settings, method] :
       {std::pair{R"({"quant_method": "awq"})", "awq"}, {"{}", "by an unnamed method"}}) {
    files.config =
        JsonDocument::parse(cat(R"({"quantization_config": )", settings, "}"), "config.json");
    EXPECT_NO_THROW(throw_if_incomplete(report_with(0), files, weights))
        << "the tower may be whole";
    test::expect_error(
        ErrorCode::kUnsupported,
        cat(": the tower is quantised (", method,
            "), expected one in BF16, F16, F32, or F8_E4M3 with scales: 1 of 2 tensors"),
        [&] { throw_if_incomplete(report_with(1), files, weights); });
  }
}

TEST(ThrowIfIncomplete, CountsALongListOfProblems) {
  const test::TemporaryDirectory folder;
  const auto weights = checkpoint_with(folder, {"tower.there"});
  test::expect_error(ErrorCode::kNotFound,
                     folder.path() +
                         ": checkpoint does not fit its config.json: 5 of 6 tensors are missing or "
                         "misshapen: tower.a missing, expected [1]; tower.b missing, expected [1]; "
                         "tower.c missing, expected [1] and 2 more; `fovea inspect " +
                         folder.path() + "` lists them",
                     [&] { throw_if_incomplete(report_with(5), small_files(), weights); });
}

TEST(LoadModel, PutsTheWeightsOnTheDevice) {
  const auto kernels = make_cpu_kernels(CpuIsa::kPortable, 1);
  const auto device = make_cpu_device(1, *kernels);
  const auto stream = device->create_stream();
  const auto weights = checkpoint::WeightSource::dummy(0);
  const auto files = small_files();
  const std::size_t before = device->allocated_bytes();
  const auto planner = plan_model(files, {});
  EXPECT_EQ(device->allocated_bytes(), before);
  const auto model = load_model(files, {}, weights, *device, *stream);
  const auto parameters =
      static_cast<std::size_t>(check_model(files, {}, weights).report.parameters);
  EXPECT_GE(device->allocated_bytes() - before, 2 * parameters) << "two bytes at least";
  EXPECT_EQ(model->graph_spec().out_width, planner->graph_spec().out_width);
}

}  // namespace
}  // namespace fovea
