// Sizes of images of the Pixtral tower: examples worked out with the reference.
#include <gtest/gtest.h>

#include "models/config_files.h"
#include "models/mistral3/config.h"
#include "support/expect_error.h"

namespace fovea::mistral3 {
namespace {

/// The tower of Mistral Small 3.1.
Config published_config() {
  Config c;
  c.image_size = 1540;
  c.grid.patch_size = 14;
  return c;
}

common::GridProcessor processor_of(const test::ConfigTexts& texts,
                                   const Config& config = published_config()) {
  return common::GridProcessor(read_processing(test::config_files(texts), config, {}));
}

common::GridProcessor published() {
  return processor_of(
      {.preprocessor = R"({"image_processor_type": "PixtralImageProcessor", "resample": 3,
           "image_mean": [0.48145466, 0.4578275, 0.40821073],
           "image_std": [0.26862954, 0.26130258, 0.27577711], "rescale_factor": 0.00392156862745098,
           "patch_size": {"height": 14, "width": 14}, "size": {"longest_edge": 1540}})",
       .processor = R"({"patch_size": 14, "spatial_merge_size": 2})"});
}

TEST(Mistral3Processing, PlansImagesAsTheReference) {
  struct Case {
    std::int64_t width, height, resized_width, resized_height;
  };
  for (const Case& c :
       {Case{1240, 1754, 1092, 1540}, Case{1920, 1080, 1540, 868}, Case{2000, 90, 1540, 84},
        Case{2600, 1900, 1540, 1148}, Case{333, 77, 336, 84}, Case{40, 500, 56, 504},
        Case{640, 480, 644, 504}, Case{1, 1, 28, 28}, Case{1540, 1540, 1540, 1540},
        Case{1541, 28, 1540, 28}}) {
    SCOPED_TRACE(std::to_string(c.width) + "x" + std::to_string(c.height));
    const ItemPlan plan = published().plan_image(c.width, c.height);
    EXPECT_EQ(plan.resized_width_px, c.resized_width);
    EXPECT_EQ(plan.resized_height_px, c.resized_height);
    EXPECT_EQ(plan.grid,
              (std::array<std::int64_t, 3>{1, c.resized_height / 14, c.resized_width / 14}));
    EXPECT_EQ(plan.spec.out_rows, c.resized_height / 28 * (c.resized_width / 28));
    EXPECT_EQ(plan.spec.num_seqs, 1);
  }
}

TEST(Mistral3Processing, SidesMayHaveLimitsOfTheirOwn) {
  const common::GridProcessor processor =
      processor_of({.preprocessor = R"({"size": {"height": 280, "width": 560}})"});
  const ItemPlan wide = processor.plan_image(1120, 280);
  EXPECT_EQ(wide.resized_width_px, 560);
  EXPECT_EQ(wide.resized_height_px, 140);
  EXPECT_EQ(processor.plan_image(280, 560).resized_width_px, 140);
}

TEST(Mistral3Processing, ThinImagesThatWouldVanishAreRefused) {
  test::expect_error(ErrorCode::kInvalidArgument,
                     "image of 4000x1 pixels is too thin: within 1540x1540 it would be 1540x0",
                     [] { (void)published().plan_image(4000, 1); });
  test::expect_error(ErrorCode::kInvalidArgument, "has no area",
                     [] { (void)published().plan_image(0, 10); });
}

TEST(Mistral3Processing, RefusesFilesThatContradictTheTower) {
  const auto expect_refused = [](ErrorCode code, const std::string& message,
                                 const test::ConfigTexts& texts) {
    test::expect_error(code, message, [&] { (void)processor_of(texts); });
  };
  expect_refused(ErrorCode::kCorruptData,
                 "processor_config.json: patch_size: 16 contradicts config.json, which says 14",
                 {.preprocessor = "{}", .processor = R"({"patch_size": 16})"});
  expect_refused(ErrorCode::kCorruptData, "spatial_merge_size: 1 contradicts",
                 {.preprocessor = "{}", .processor = R"({"spatial_merge_size": 1})"});
  expect_refused(ErrorCode::kCorruptData, "patch_size: 16 contradicts",
                 {.preprocessor = R"({"patch_size": {"height": 16, "width": 14}})"});
  expect_refused(ErrorCode::kUnsupported, "resample: only 3 is supported, got 2",
                 {.preprocessor = R"({"resample": 2})"});
  expect_refused(ErrorCode::kUnsupported, "do_resize: false is not supported",
                 {.preprocessor = R"({"do_resize": false})"});
  expect_refused(ErrorCode::kCorruptData, "height", {.preprocessor = R"({"size": {"width": 4}})"});
}

TEST(Mistral3Processing, PatchesOfTheFileOfImagesMayBeTokens) {
  for (const char* patch : {"28", "14", R"({"height": 28, "width": 28})"}) {
    EXPECT_NO_THROW(
        (void)processor_of({.preprocessor = std::string(R"({"patch_size": )") + patch + "}"}));
  }
}

TEST(Mistral3Processing, WhatAFileDoesNotSayIsThatOfTheReferencesClass) {
  const common::GridProcessor processor = processor_of({.preprocessor = "{}"});
  EXPECT_EQ(processor.processing().scaling, common::kClipScaling);
  EXPECT_EQ(processor.plan_image(4000, 2000).resized_width_px, 1036) << "1024, rounded up";
}

TEST(Mistral3Processing, ParametersMayBeNestedAsTransformers5WritesThem) {
  const common::GridProcessor processor =
      processor_of({.processor = R"({"image_processor": {"size": {"longest_edge": 280},
                                         "patch_size": 14}, "patch_size": 14})"});
  EXPECT_EQ(processor.plan_image(560, 280).resized_width_px, 280);
}

TEST(Mistral3Processing, SaysWhatItAssumesAndWhereValuesComeFrom) {
  EXPECT_EQ(processor_of({}).assumptions(),
            "missing=model/preprocessor_config.json longest_edge=1540 "
            "image_mean=0.481455,0.457828,0.408211 image_std=0.26863,0.261303,0.275777");
  EXPECT_EQ(processor_of({}).plan_image(4000, 2000).resized_width_px, 1540);
  EXPECT_EQ(published().assumptions(), "");
  EXPECT_EQ(processor_of({.preprocessor = R"({"image_std": [1, 1, 1]})"}).sources(),
            "image.file=\"preprocessor_config.json\" image.given=image_std "
            "image.class_default=size,image_mean,rescale_factor,resample");
}

}  // namespace
}  // namespace fovea::mistral3
