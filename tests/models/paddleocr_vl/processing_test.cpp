// Sizes of images of PaddleOCR-VL: examples worked out with the reference.
#include <gtest/gtest.h>

#include "models/config_files.h"
#include "models/paddleocr_vl/config.h"
#include "support/expect_error.h"

namespace fovea::paddleocr_vl {
namespace {

constexpr common::GridGeometry kGeometry{.patch_size = 14, .temporal_patch_size = 1};

common::GridProcessor processor_of(const std::string& file, const MediaOptions& media = {}) {
  return common::GridProcessor(
      read_processing(test::config_files({.preprocessor = file}), kGeometry, media));
}

/// The file of a checkpoint with the limits of the reference's class.
common::GridProcessor published() {
  return processor_of(R"({"patch_size": 14, "merge_size": 2, "temporal_patch_size": 1,
      "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5], "rescale_factor": 0.003921568627,
      "resample": 3, "size": {"shortest_edge": 147456, "longest_edge": 2359296}})");
}

TEST(PaddleOcrVlProcessing, PlansImagesAsTheReference) {
  struct Case {
    std::int64_t width, height, grid_height, grid_width;
  };
  for (const Case& c : {Case{1240, 1754, 126, 88}, Case{1920, 1080, 78, 138},
                        Case{2000, 90, 6, 142}, Case{2600, 1900, 92, 128}, Case{333, 77, 14, 58},
                        Case{40, 500, 98, 8}, Case{640, 480, 34, 46}}) {
    SCOPED_TRACE(std::to_string(c.width) + "x" + std::to_string(c.height));
    const ItemPlan plan = published().plan_image(c.width, c.height);
    EXPECT_EQ(plan.grid, (std::array<std::int64_t, 3>{1, c.grid_height, c.grid_width}));
    EXPECT_EQ(plan.spec.out_rows, c.grid_height * c.grid_width / 4);
    EXPECT_EQ(plan.spec.num_seqs, 1);
  }
}

TEST(PaddleOcrVlProcessing, SidesBelowATokenAreStretchedFirst) {
  const common::GridProcessor processor =
      processor_of(R"({"size": {"shortest_edge": 784, "longest_edge": 2359296}})");
  // 300 x 10 becomes 840 x 28: without that, it would be rounded to 308 x 0 and grow from there.
  EXPECT_EQ(processor.plan_image(300, 10).grid, (std::array<std::int64_t, 3>{1, 2, 60}));
  EXPECT_EQ(processor.plan_image(10, 300).grid, (std::array<std::int64_t, 3>{1, 60, 2}));
  EXPECT_EQ(processor.plan_image(1, 1).grid, (std::array<std::int64_t, 3>{1, 2, 2}));
  EXPECT_EQ(processor.plan_image(17, 8).grid, (std::array<std::int64_t, 3>{1, 2, 4}));
}

TEST(PaddleOcrVlProcessing, ThinAndEmptyImagesAreRefused) {
  test::expect_error(ErrorCode::kInvalidArgument, "side ratios up to 200",
                     [] { (void)published().plan_image(6000, 20); });
  EXPECT_NO_THROW((void)published().plan_image(199, 1));
  test::expect_error(ErrorCode::kInvalidArgument, "has no area",
                     [] { (void)published().plan_image(0, 10); });
}

TEST(PaddleOcrVlProcessing, LimitsBesideSizeAndThoseOfTheUserComeFirst) {
  const std::string file = R"({"min_pixels": 784, "max_pixels": 80000,
                               "size": {"shortest_edge": 147456, "longest_edge": 2359296}})";
  EXPECT_EQ(processor_of(file).processing().limits.image.min_pixels, 784);
  EXPECT_EQ(processor_of(file).plan_image(1000, 1000).resized_width_px, 280);
  MediaOptions media;
  media.max_pixels = 7840;
  EXPECT_EQ(processor_of(file, media).plan_image(1000, 1000).resized_width_px, 84);
}

TEST(PaddleOcrVlProcessing, TakesNoVideos) {
  test::expect_error(ErrorCode::kUnsupported, "no videos",
                     [] { (void)published().plan_video(2, 64, 64); });
}

TEST(PaddleOcrVlProcessing, PixelValuesComeRowByRowAndAreKeptTokenByToken) {
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
}

TEST(PaddleOcrVlProcessing, SaysWhatItAssumesAndWhereValuesComeFrom) {
  EXPECT_EQ(processor_of("").assumptions(),
            "missing=model/preprocessor_config.json image_pixels=147456..2359296 "
            "image_mean=0.481455,0.457828,0.408211 image_std=0.26863,0.261303,0.275777");
  EXPECT_EQ(published().assumptions(), "");
  EXPECT_EQ(processor_of(R"({"image_std": [1, 1, 1]})").sources(),
            "image.file=\"preprocessor_config.json\" image.given=image_std "
            "image.class_default=shortest_edge,longest_edge,image_mean,rescale_factor,resample");
}

}  // namespace
}  // namespace fovea::paddleocr_vl
