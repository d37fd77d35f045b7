// Sizes and padding of Kimi-VL: examples worked out with the reference.
#include "models/kimi_vl/model.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "models/config_files.h"
#include "support/expect_error.h"

namespace fovea::kimi_vl {
namespace {

constexpr common::GridGeometry kGeometry{.patch_size = 14, .temporal_patch_size = 1};

common::GridProcessor processor_of(const std::string& file) {
  return common::GridProcessor(
      read_processing(test::config_files({.preprocessor = file}), kGeometry, {}));
}

/// The file of the published checkpoints.
common::GridProcessor published(int limit = 4096) {
  return processor_of(R"({"patch_size": 14, "pad_input": true, "merge_kernel_size": [2, 2],
      "num_pooled_tokens": 1024, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5],
      "in_token_limit": )" +
                      std::to_string(limit) + "}");
}

TEST(KimiVlProcessor, PlansImagesAsTheReference) {
  struct Case {
    std::int64_t width, height;
    int limit;
    std::int64_t grid_height, grid_width;
  };
  for (const Case& c :
       {Case{224, 224, 4096, 16, 16}, Case{1, 1, 4096, 2, 2}, Case{100, 50, 4096, 4, 8},
        Case{640, 480, 4096, 36, 46}, Case{1024, 768, 4096, 56, 74}, Case{1920, 1080, 4096, 48, 86},
        Case{4000, 3000, 4096, 56, 74}, Case{897, 897, 4096, 66, 66},
        Case{8000, 200, 4096, 12, 410}, Case{1920, 1080, 16384, 78, 138},
        Case{4000, 3000, 16384, 112, 150}}) {
    SCOPED_TRACE(std::to_string(c.width) + "x" + std::to_string(c.height));
    const ItemPlan plan = published(c.limit).plan_image(c.width, c.height);
    EXPECT_EQ(plan.grid, (std::array<std::int64_t, 3>{1, c.grid_height, c.grid_width}));
    EXPECT_EQ(plan.spec.input_rows, c.grid_height * c.grid_width);
    EXPECT_EQ(plan.spec.out_rows, c.grid_height * c.grid_width / 4);
    EXPECT_EQ(plan.spec.num_seqs, 1);
  }
}

TEST(KimiVlProcessor, RefusesGridsWithoutAnglesInTheReference) {
  const common::GridProcessor processor = published(16384);
  test::expect_error(ErrorCode::kInvalidArgument, "less than 512 patches a side, got 572x16",
                     [&] { (void)processor.plan_image(8000, 200); });
  test::expect_error(ErrorCode::kInvalidArgument, "less than 512 patches a side, got 512x2", [&] {
    (void)processor.plan_grid(Modality::kImage, {1, 2, 512});
  });
  test::expect_error(ErrorCode::kInvalidArgument, "has no area",
                     [&] { (void)processor.plan_image(0, 10); });
}

TEST(KimiVlProcessor, PadsWithBlackOnTheRightAndBelow) {
  const common::GridProcessor processor = published();
  const ItemPlan plan = processor.plan_image(20, 30);
  ASSERT_EQ(plan.grid, (std::array<std::int64_t, 3>{1, 4, 2}));
  const std::vector<std::uint8_t> white(20 * 30 * 3, 255);
  std::vector<std::uint8_t> pixels(plan.pixel_bytes, 7);
  const RgbView image{white.data(), 20, 30};
  processor.fill_frame(plan, 0, image, pixels);
  for (std::size_t y = 0; y < 56; ++y) {
    for (std::size_t x = 0; x < 28; ++x) {
      ASSERT_EQ(pixels[(y * 28 + x) * 3], x < 20 && y < 30 ? 255 : 0) << x << ", " << y;
    }
  }
}

TEST(KimiVlProcessor, PixelValuesComeRowByRowAndAreKeptTokenByToken) {
  const common::GridProcessor processor = published();
  const ItemPlan plan = processor.plan_grid(Modality::kImage, {1, 2, 4});
  std::vector<float> values;  // every patch has one value, that of the byte 10 * (its index)
  for (int patch = 0; patch < 8; ++patch) {
    values.insert(values.end(), 588, (static_cast<float>(10 * patch) / 255.0f - 0.5f) / 0.5f);
  }
  std::vector<std::uint8_t> pixels(plan.pixel_bytes);
  processor.fill_pixel_values(
      plan, {reinterpret_cast<const std::byte*>(values.data()), DType::kF32, {8, 588}}, pixels);
  std::vector<int> patches;
  for (std::size_t patch = 0; patch < 8; ++patch) patches.push_back(pixels[patch * 588] / 10);
  EXPECT_EQ(patches, (std::vector<int>{0, 1, 4, 5, 2, 3, 6, 7}));
  test::expect_error(ErrorCode::kInvalidArgument, "pixel_values must be [8, 588]", [&] {
    processor.fill_pixel_values(plan, {nullptr, DType::kF32, {8, 3}}, pixels);
  });
}

TEST(KimiVlProcessor, RefusesFilesThatContradictTheTower) {
  const auto expect_refused = [](ErrorCode code, const std::string& message,
                                 const std::string& file) {
    test::expect_error(code, message, [&] { (void)processor_of(file); });
  };
  expect_refused(ErrorCode::kCorruptData, "patch_size: 16 contradicts config.json, which says 14",
                 R"({"patch_size": 16})");
  expect_refused(ErrorCode::kCorruptData, "merge_kernel_size: 1 contradicts",
                 R"({"merge_kernel_size": [1, 1]})");
  expect_refused(ErrorCode::kUnsupported, "pad_input: false is not supported",
                 R"({"pad_input": false})");
  expect_refused(
      ErrorCode::kUnsupported,
      "preprocessor_config.json.pad_input: false, which is the default, is not supported", "{}");
}

TEST(KimiVlProcessor, WhatAFileDoesNotSayIsThatOfTheReferencesClass) {
  const common::GridProcessing p = processor_of(R"({"pad_input": true})").processing();
  EXPECT_EQ(p.scaling, common::kClipScaling);
  EXPECT_EQ(p.limits.image.max_pixels, 4096 * 14 * 14);
}

TEST(KimiVlProcessor, SaysWhatItAssumesWithoutAFile) {
  EXPECT_EQ(processor_of("").assumptions(),
            "missing=model/preprocessor_config.json in_token_limit=4096 "
            "image_mean=0.481455,0.457828,0.408211 image_std=0.26863,0.261303,0.275777");
  EXPECT_EQ(published().assumptions(), "");
}

TEST(KimiVlProcessor, SaysWhereEveryValueComesFrom) {
  EXPECT_EQ(processor_of(R"({"pad_input": true, "image_std": [1, 1, 1]})").sources(),
            "image.file=\"preprocessor_config.json\" image.given=image_std "
            "image.class_default=in_token_limit,image_mean");
}

}  // namespace
}  // namespace fovea::kimi_vl
