// SigLIP 2 NaFlex: sizes of images, what is read of its files, and its list of tensors.
#include "models/siglip2/model.h"

#include <gtest/gtest.h>

#include "models/config_files.h"
#include "models/load_model.h"
#include "models/siglip2/processor.h"
#include "support/expect_error.h"

namespace fovea::siglip2 {
namespace {

CheckedModel check(const std::string& more, TowerOutput output, const std::string& processor = {}) {
  return check_model(
      test::config_files({.config = R"({"architectures": ["Siglip2VisionModel"])" + more + "}",
                          .preprocessor = processor}),
      {}, checkpoint::WeightSource::dummy(0), output);
}

TEST(Siglip2Model, HasTheTensorsOfThePublishedTower) {
  const CheckedModel model = check("", TowerOutput::kVectors);
  EXPECT_EQ(model.report.tensors.size(), 208U);
  EXPECT_EQ(model.report.parameters, 92'930'304);
}

TEST(Siglip2Sizes, AreThoseOfTheReference) {
  // Of get_image_size_for_max_num_patches.
  const auto size = [](std::int64_t width, std::int64_t height, std::int64_t most) {
    return naflex_size(height, width, 16, most);
  };
  EXPECT_EQ(size(1920, 1080, 256), (common::Size2d{192, 336}));
  EXPECT_EQ(size(640, 480, 256), (common::Size2d{224, 288}));
  EXPECT_EQ(size(333, 500, 1024), (common::Size2d{624, 416}));
  EXPECT_EQ(size(17, 9, 256), (common::Size2d{192, 336}));
  EXPECT_EQ(size(1, 1, 256), (common::Size2d{112, 112}));
  EXPECT_EQ(size(1, 4000, 256), (common::Size2d{4096, 16}));
  EXPECT_EQ(size(65535, 3, 36), (common::Size2d{16, 576}));
  EXPECT_EQ(size(4000, 3000, 1), (common::Size2d{16, 16}));
  EXPECT_EQ(size(100, 100, 7), (common::Size2d{32, 32}));
}

TEST(Siglip2Model, AnImageHasItsOwnPatches) {
  const CheckedModel rows = check("", TowerOutput::kRows, R"({"max_num_patches": 64})");
  const ItemPlan plan = rows.planner->processor().plan_image(200, 100);
  EXPECT_EQ(plan.spec.out_rows, plan.grid[1] * plan.grid[2]);
  EXPECT_LE(plan.spec.out_rows, 64);
  EXPECT_FALSE(plan.has_grid_thw);
  const CheckedModel vectors = check("", TowerOutput::kVectors, R"({"max_num_patches": 64})");
  const ItemSpec spec = vectors.planner->processor().plan_image(200, 100).spec;
  EXPECT_EQ(spec.out_rows, 1);
  EXPECT_EQ(spec.path_tokens[0], plan.spec.out_rows);
}

TEST(Siglip2Model, RefusesWhatItDoesNotHave) {
  const auto expect_refused = [](ErrorCode code, const std::string& message,
                                 const std::string& more, const std::string& processor) {
    test::expect_error(code, message, [&] { (void)check(more, TowerOutput::kVectors, processor); });
  };
  expect_refused(ErrorCode::kUnsupported, "num_patches: 200 is no square",
                 R"(, "num_patches": 200)", "");
  expect_refused(ErrorCode::kUnsupported, "vision_use_head: false", R"(, "vision_use_head": false)",
                 "");
  expect_refused(ErrorCode::kCorruptData, "patch_size: 14 contradicts config.json", "",
                 R"({"patch_size": 14})");
  expect_refused(ErrorCode::kUnsupported, "expected Siglip2ImageProcessor, got CLIPImageProcessor",
                 "", R"({"image_processor_type": "CLIPImageProcessor"})");
  expect_refused(ErrorCode::kCorruptData, "max_num_patches", "", R"({"max_num_patches": 0})");
}

}  // namespace
}  // namespace fovea::siglip2
