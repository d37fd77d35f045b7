// Sizes and rows of images of HunyuanOCR: examples worked out with the reference.
#include "models/hunyuan_vl/processor.h"

#include <gtest/gtest.h>

#include "models/config_files.h"
#include "support/expect_error.h"

namespace fovea::hunyuan_vl {
namespace {

constexpr common::GridGeometry kGeometry{.patch_size = 16, .temporal_patch_size = 1};

Processor processor_of(const std::string& file, const MediaOptions& media = {}) {
  return Processor(read_processing(test::config_files({.preprocessor = file}), kGeometry, media));
}

Processor published() {
  return processor_of(R"({"min_pixels": 262144, "max_pixels": 4194304, "patch_size": 16,
      "resample": 1, "temporal_patch_size": 1, "merge_size": 2,
      "image_mean": [0.48145466, 0.4578275, 0.40821073],
      "image_std": [0.26862954, 0.26130258, 0.27577711]})");
}

TEST(HunyuanVlProcessor, PlansImagesAsTheReference) {
  struct Case {
    std::int64_t width, height, grid_height, grid_width;
  };
  for (const Case& c : {Case{1240, 1754, 110, 78}, Case{1920, 1080, 68, 120},
                        Case{2000, 90, 8, 152}, Case{2600, 1900, 108, 148}, Case{333, 77, 16, 68},
                        Case{40, 500, 114, 10}, Case{640, 480, 30, 40}}) {
    SCOPED_TRACE(std::to_string(c.width) + "x" + std::to_string(c.height));
    const ItemPlan plan = published().plan_image(c.width, c.height);
    EXPECT_EQ(plan.grid, (std::array<std::int64_t, 3>{1, c.grid_height, c.grid_width}));
    EXPECT_EQ(plan.spec.out_rows, c.grid_height / 2 * (c.grid_width / 2 + 1) + 2);
    EXPECT_EQ(plan.spec.input_rows, c.grid_height * c.grid_width);
  }
}

TEST(HunyuanVlProcessor, RowsOfAnItemAreThoseOfItsOnlyUnit) {
  for (const ItemPlan& plan :
       {published().plan_image(640, 480), published().plan_grid(Modality::kImage, {1, 30, 40})}) {
    EXPECT_EQ(plan.spec.out_rows, 15 * 21 + 2);
    EXPECT_EQ(plan.spec.path_tokens[0], plan.spec.out_rows);
    EXPECT_EQ(plan.spec.units_on(0).rows, plan.spec.out_rows);
    EXPECT_EQ(plan.spec.units_on(0).count, 1);
    EXPECT_EQ(plan.spec.units_on(0).patches, 1200);
    EXPECT_EQ(plan.spec.num_seqs, 1);
  }
}

TEST(HunyuanVlProcessor, ThinAndEmptyImagesAreRefused) {
  test::expect_error(ErrorCode::kInvalidArgument, "side ratios up to 200",
                     [] { (void)published().plan_image(6020, 30); });
  test::expect_error(ErrorCode::kInvalidArgument, "has no area",
                     [] { (void)published().plan_image(0, 10); });
}

TEST(HunyuanVlProcessor, LimitsBesideSizeAndThoseOfTheUserComeFirst) {
  const std::string file = R"({"min_pixels": 1024, "max_pixels": 65536,
                               "size": {"shortest_edge": 262144, "longest_edge": 4194304}})";
  EXPECT_EQ(processor_of(file).processing().limits.image.min_pixels, 1024);
  EXPECT_EQ(processor_of(file).plan_image(1000, 1000).resized_width_px, 256);
  MediaOptions media;
  media.max_pixels = 16384;
  EXPECT_EQ(processor_of(file, media).plan_image(1000, 1000).resized_width_px, 128);
}

TEST(HunyuanVlProcessor, TheFilterIsBicubicWhateverTheFileSays) {
  for (const char* file : {R"({"resample": 1})", R"({"resample": 2})", "{}"}) {
    EXPECT_EQ(processor_of(file).processing().filter, media::ResizeFilter::kBicubic) << file;
  }
}

TEST(HunyuanVlProcessor, TakesNoVideos) {
  test::expect_error(ErrorCode::kUnsupported, "no videos",
                     [] { (void)published().plan_video(2, 64, 64); });
}

TEST(HunyuanVlProcessor, SaysWhatItAssumesAndWhereValuesComeFrom) {
  EXPECT_EQ(processor_of("").assumptions(),
            "missing=model/preprocessor_config.json image_pixels=262144..4194304 "
            "image_mean=0.481455,0.457828,0.408211 image_std=0.26863,0.261303,0.275777");
  EXPECT_EQ(published().assumptions(), "");
  EXPECT_EQ(processor_of(R"({"image_std": [1, 1, 1], "resample": 2})").sources(),
            "image.file=\"preprocessor_config.json\" image.given=image_std "
            "image.class_default=shortest_edge,longest_edge,image_mean,rescale_factor")
      << "resample is not read";
}

}  // namespace
}  // namespace fovea::hunyuan_vl
