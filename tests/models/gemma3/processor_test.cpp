// From images to views: numbers of crops as the reference has them, and what a file may say.
#include "models/gemma3/processor.h"

#include <gtest/gtest.h>

#include "models/config_files.h"
#include "support/expect_error.h"

namespace fovea::gemma3 {
namespace {

constexpr PanAndScan kOn{.is_on = true};

Processing processing_of(const std::string& file) {
  Config config;
  config.tower.view = {.side_px = 896, .patch_px = 14, .merge = 4};
  return read_processing(test::config_files({.preprocessor = file}), config, {});
}

TEST(Gemma3Processor, AnImageIsOneViewUnlessTheFileAsksForCrops) {
  for (const char* file : {"", "{}", R"({"do_pan_and_scan": null})"}) {
    const ItemPlan plan = Processor(processing_of(file)).plan_image(1920, 1080);
    EXPECT_EQ(plan.spec.out_rows, 256);
    EXPECT_EQ(plan.spec.input_rows, 4096);
    EXPECT_EQ(plan.grid, (std::array<std::int64_t, 3>{1, 0, 0}));
    EXPECT_EQ(plan.target_width_px, 896) << "decoders may shrink it";
  }
}

TEST(Gemma3Processor, CropsImagesAsTheReference) {
  struct Case {
    std::int64_t width, height, cols, rows;
  };
  const Processor processor(processing_of(R"({"do_pan_and_scan": true})"));
  for (const Case& c :
       {Case{1240, 1754, 1, 2}, Case{1920, 1080, 2, 1}, Case{2000, 90, 0, 0},
        Case{2600, 1900, 2, 1}, Case{333, 77, 0, 0}, Case{40, 500, 0, 0}, Case{640, 480, 2, 1},
        Case{1000, 1000, 0, 0}, Case{1199, 1000, 0, 0}, Case{1200, 1000, 2, 1},
        Case{3000, 300, 4, 1}, Case{300, 3000, 1, 4}, Case{2499, 1000, 2, 1},
        Case{2500, 1000, 3, 1}, Case{512, 400, 2, 1}, Case{510, 400, 0, 0}}) {
    SCOPED_TRACE(::testing::Message() << c.width << "x" << c.height);
    const ItemPlan plan = processor.plan_image(c.width, c.height);
    EXPECT_EQ(plan.grid, (std::array<std::int64_t, 3>{1, c.rows, c.cols}));
    EXPECT_EQ(plan.spec.units[0].count, 1 + c.cols * c.rows);
    EXPECT_EQ(plan.spec.out_rows, 256 * (1 + c.cols * c.rows));
    EXPECT_EQ(plan.target_width_px, c.cols > 0 ? 0 : 896) << "crops need the full size";
  }
}

TEST(Gemma3Processor, TheLastCropMayBeShorter) {
  const Crops crops = plan_crops(1000, 300, kOn);
  EXPECT_EQ(crops.tiling, (common::Tiling{.cols = 3, .rows = 1}));
  EXPECT_EQ(crops.width_px, 334);
  EXPECT_EQ(crops.height_px, 300);
}

TEST(Gemma3Processor, RefusesCropsWithoutPixels) {
  const PanAndScan tiny{.is_on = true, .min_crop_px = 1};
  EXPECT_EQ(plan_crops(8, 2, tiny).tiling.count(), 4);
  test::expect_error(ErrorCode::kInvalidArgument,
                     "image of 5x1 pixels is too small for 4 crops of 2 pixels",
                     [&] { (void)plan_crops(5, 1, tiny); });
}

TEST(Gemma3Processor, ReadsTheNumbersOfPanAndScan) {
  const PanAndScan rule = processing_of(R"({"do_pan_and_scan": true,
      "pan_and_scan_min_crop_size": 100, "pan_and_scan_max_num_crops": 6,
      "pan_and_scan_min_ratio_to_activate": 1.5})")
                              .pan_and_scan;
  EXPECT_EQ(rule.min_crop_px, 100);
  EXPECT_EQ(rule.max_crops, 6);
  EXPECT_EQ(rule.min_ratio, 1.5);
  EXPECT_EQ(plan_crops(2000, 200, rule).tiling.cols, 6);
  EXPECT_EQ(plan_crops(280, 200, rule).tiling.cols, 0);
  test::expect_error(ErrorCode::kCorruptData, "pan_and_scan_max_num_crops: expected a number in",
                     [] { (void)processing_of(R"({"pan_and_scan_max_num_crops": 0})"); });
}

TEST(Gemma3Processor, CropsAreTheirPartsOfTheImage) {
  // An image of two halves, each of one colour, whose crops are these.
  Config config;
  config.tower.view = {.side_px = 2, .patch_px = 1};
  Processing processing = read_processing(test::config_files({}), config, {});
  processing.pan_and_scan = {.is_on = true, .min_crop_px = 2};
  const Processor processor(processing);
  std::vector<std::uint8_t> rgb;
  for (int y = 0; y < 3; ++y) {
    for (int x = 0; x < 6; ++x) rgb.insert(rgb.end(), 3, x < 3 ? 10 : 200);
  }
  const ItemPlan plan = processor.plan_image(6, 3);
  std::vector<std::uint8_t> pixels(plan.pixel_bytes);
  processor.fill_frame(plan, 0, {rgb.data(), 6, 3}, pixels);
  ASSERT_EQ(pixels.size(), 36U);
  EXPECT_EQ(std::vector(pixels.begin() + 12, pixels.begin() + 24),
            std::vector<std::uint8_t>(12, 10));
  EXPECT_EQ(std::vector(pixels.begin() + 24, pixels.end()), std::vector<std::uint8_t>(12, 200));
}

}  // namespace
}  // namespace fovea::gemma3
