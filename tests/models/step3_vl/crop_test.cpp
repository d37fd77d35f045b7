// Which windows an image has: the worked examples of the reference, and every bound.
#include "models/step3_vl/processor.h"

#include <gtest/gtest.h>

#include "core/check.h"
#include "support/expect_error.h"

namespace fovea::step3_vl {
namespace {

struct Example {
  std::int64_t width, height, window, crop_width, crop_height, cols, rows;
};

constexpr Example kExamples[] = {{448, 448, 0, 0, 0, 0, 0},
                                 {700, 500, 0, 0, 0, 0, 0},
                                 {727, 727, 0, 0, 0, 0, 0},
                                 {700, 400, 400, 800, 400, 2, 1},
                                 {728, 728, 504, 1008, 1008, 2, 2},
                                 {729, 729, 504, 1008, 1008, 2, 2},
                                 {1024, 768, 504, 1008, 1008, 2, 2},
                                 {800, 600, 504, 1008, 504, 2, 1},
                                 {604, 1000, 504, 504, 1008, 1, 2},
                                 {605, 1000, 504, 1008, 1008, 2, 2},
                                 {1280, 720, 504, 1512, 1008, 3, 2},
                                 {1920, 1080, 504, 2016, 1008, 4, 2},
                                 {1080, 1920, 504, 1008, 2016, 2, 4},
                                 {3024, 3024, 504, 3024, 3024, 6, 6},
                                 {4032, 3024, 504, 3024, 2520, 6, 5},
                                 {2500, 500, 500, 2500, 500, 5, 1},
                                 {2500, 100, 100, 2500, 100, 25, 1},
                                 {300, 3000, 300, 300, 3000, 1, 10},
                                 {900, 500, 504, 1008, 500, 2, 1},
                                 {20, 100, 0, 0, 0, 0, 0},
                                 {10, 200, 0, 0, 0, 0, 0}};

TEST(Step3VlCrop, WindowsAreThoseOfTheWorkedExamples) {
  for (const Example& e : kExamples) {
    SCOPED_TRACE(::testing::Message() << e.width << "x" << e.height);
    const Crop crop = plan_crop(e.width, e.height, true);
    EXPECT_EQ(crop.window_px, e.window);
    EXPECT_EQ(crop.windows.cols, e.cols);
    EXPECT_EQ(crop.windows.rows, e.rows);
    EXPECT_EQ(crop.crop_width_px, e.crop_width);
    EXPECT_EQ(crop.crop_height_px, e.crop_height);
  }
}

TEST(Step3VlCrop, ThinSmallImagesAreSquared) {
  EXPECT_EQ(plan_crop(20, 100, true).square_px, 100);
  EXPECT_EQ(plan_crop(20, 100, true).width_px, 100);
  EXPECT_EQ(plan_crop(31, 125, true).square_px, 125);
  EXPECT_EQ(plan_crop(31, 124, true).square_px, 0) << "4 times as high as wide, not more";
  EXPECT_EQ(plan_crop(124, 31, true).square_px, 0);
  EXPECT_EQ(plan_crop(32, 1000, true).square_px, 0) << "no side below 32";
}

TEST(Step3VlCrop, TheLongerSideIsLimited) {
  const Crop crop = plan_crop(4032, 3024, true);
  EXPECT_EQ(crop.width_px, 3024);
  EXPECT_EQ(crop.height_px, 2268);
  EXPECT_EQ(plan_crop(3024, 3024, true).width_px, 3024);
  EXPECT_EQ(plan_crop(1, 4000, true).width_px, 3024) << "the square is limited, too";
}

TEST(Step3VlCrop, AFifthOfAWindowIsNoWindow) {
  EXPECT_EQ(plan_crop(604, 1000, true).windows.cols, 1);
  EXPECT_EQ(plan_crop(605, 1000, true).windows.cols, 2);
}

TEST(Step3VlCrop, WindowsCanBeSwitchedOff) {
  const Crop crop = plan_crop(4032, 3024, false);
  EXPECT_EQ(crop.windows.count(), 0);
  EXPECT_EQ(crop.width_px, 3024);
}

TEST(Step3VlCrop, RefusesWhatHasNoAreaOrFillsTheMemory) {
  const auto expect_refused = [](std::int64_t width, std::int64_t height, const char* message) {
    test::expect_error(ErrorCode::kInvalidArgument, message,
                       [&] { (void)plan_crop(width, height, true); });
  };
  expect_refused(0, 5, "image of 0x5 pixels has no area");
  expect_refused(5, -1, "has no area");
  expect_refused(31, 8193, "would be padded to a square, at most of side 8192");
  expect_refused(32, 100000, "is too thin: limited to 3024 pixels it would vanish");
  expect_refused(32, 60000, "has 3024 windows, at most 900");
}

}  // namespace
}  // namespace fovea::step3_vl
