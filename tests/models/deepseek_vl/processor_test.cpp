// From images to padded squares of DeepSeek-VL: sizes of the reference, padding, what is refused.
#include "models/deepseek_vl/processor.h"

#include <gtest/gtest.h>

#include "models/config_files.h"
#include "support/expect_error.h"

namespace fovea::deepseek_vl {
namespace {

using Color = std::array<std::uint8_t, 3>;

Processing processing_of(const std::string& file, std::int64_t side_px = 384) {
  Config config;
  config.tower.view = {.side_px = side_px, .patch_px = 16};
  return read_processing(test::config_files({.preprocessor = file}), config, {});
}

TEST(DeepseekVlProcessor, FitsTheLongerSide) {
  struct Case {
    std::int64_t width, height, resized_width, resized_height;
  };
  const Processor processor(processing_of("", 128));
  for (const Case& c : {Case{64, 200, 41, 128}, Case{61, 47, 128, 99}, Case{180, 150, 128, 107},
                        Case{120, 90, 128, 96}, Case{333, 40, 128, 15}, Case{128, 128, 128, 128},
                        Case{1, 1, 128, 128}, Case{2000, 90, 128, 14}, Case{256, 37, 128, 18},
                        Case{256, 39, 128, 20}}) {
    SCOPED_TRACE(::testing::Message() << c.width << "x" << c.height);
    const ItemPlan plan = processor.plan_image(c.width, c.height);
    EXPECT_EQ(plan.resized_width_px, c.resized_width);
    EXPECT_EQ(plan.resized_height_px, c.resized_height);
    EXPECT_EQ(plan.target_height_px, c.resized_height);
    EXPECT_EQ(plan.grid, (std::array<std::int64_t, 3>{1, 1, 1}));
    EXPECT_EQ(plan.spec.out_rows, 64);
    EXPECT_EQ(plan.pixel_bytes, 128U * 128 * 3);
  }
}

TEST(DeepseekVlProcessor, PadsOnBothSides) {
  Processing processing = processing_of("", 16);
  processing.min_size = 1;
  processing.background = {1, 2, 3};
  const Processor processor(processing);
  const std::vector<std::uint8_t> rgb(16 * 3 * 3, 200);  // 3 pixels high
  const ItemPlan plan = processor.plan_image(16, 3);
  std::vector<std::uint8_t> pixels(plan.pixel_bytes);
  processor.fill_frame(plan, 0, {rgb.data(), 16, 3}, pixels);
  for (std::size_t y = 0; y < 16; ++y) {
    const bool is_image = y >= 6 && y < 9;  // 13 rows are left: 6 above, 7 below
    for (std::size_t x = 0; x < 16; ++x) {
      for (std::size_t c = 0; c < 3; ++c) {
        ASSERT_EQ(pixels[(y * 16 + x) * 3 + c], is_image ? 200 : c + 1) << y << " " << x;
      }
    }
  }
}

TEST(DeepseekVlProcessor, TheColourOfThePaddingFollowsFromTheMean) {
  EXPECT_EQ(processing_of("").background, (Color{122, 116, 104}));
  EXPECT_EQ(processing_of("{}").background, (Color{122, 116, 104}));
  EXPECT_EQ(processing_of(R"({"image_mean": [0.48145466, 0.2, 1],
                              "background_color": [9, 9, 9]})")
                .background,
            (Color{122, 51, 255}));
}

TEST(DeepseekVlProcessor, RefusesWhatItWouldGetWrong) {
  const auto expect_refused = [](const std::string& message, const std::string& file) {
    test::expect_error(ErrorCode::kUnsupported, message, [&] { (void)processing_of(file); });
  };
  expect_refused("do_pad: only true is supported, got false", R"({"do_pad": false})");
  expect_refused("min_size: images of at least 385 pixels do not fit views of 384",
                 R"({"min_size": 385})");
  expect_refused("image_mean[1]: padding needs a number in [0, 1], got 1.5",
                 R"({"image_mean": [0.5, 1.5, 0.5]})");
}

}  // namespace
}  // namespace fovea::deepseek_vl
