// Frames on their way to pixels: checked, resized, placed.
#include "models/common/frames.h"

#include <gtest/gtest.h>

#include <vector>

#include "fovea/error.h"
#include "support/expect_error.h"

namespace fovea::common {
namespace {

TEST(CheckArea, RefusesImagesWithoutOne) {
  EXPECT_NO_THROW(check_area(1, 1));
  test::expect_error(ErrorCode::kInvalidArgument, "image of 0x3 pixels has no area",
                     [] { check_area(0, 3); });
  test::expect_error(ErrorCode::kInvalidArgument, "image of 3x0 pixels has no area",
                     [] { check_area(3, 0); });
}

TEST(CheckFrame, TakesThePlannedFramesAndSizeAlone) {
  const std::vector<std::uint8_t> bytes(12);
  const RgbView frame{bytes.data(), 2, 2};
  const std::vector<std::uint8_t> out(5);
  ItemPlan plan;
  plan.num_frames = 2;
  plan.source_width_px = 2;
  plan.source_height_px = 2;
  plan.pixel_bytes = 5;
  EXPECT_NO_THROW(check_frame(plan, 1, frame, out));
  test::expect_error(ErrorCode::kInvalidArgument, "item was planned for 2 frames, got frame 2",
                     [&] { check_frame(plan, 2, frame, out); });
  test::expect_error(ErrorCode::kInternal, "pixels need 5 bytes, got 4",
                     [&] { check_frame(plan, 0, frame, std::span(out).first(4)); });
  const RgbView turned{bytes.data(), 1, 4};
  test::expect_error(ErrorCode::kInvalidArgument, "frame 1 is 1x4 pixels, planned was 2x2",
                     [&] { check_frame(plan, 1, turned, out); });
}

TEST(CheckFrame, TakesAFractionOfTheSizeWhereThePlanNamesATarget) {
  ItemPlan plan;
  plan.source_width_px = 9;
  plan.source_height_px = 16;
  const std::vector<std::uint8_t> bytes(5 * 8 * 3);
  const auto refused = [&](const RgbView& frame) {
    try {
      check_frame(plan, 0, frame, {});
      return false;
    } catch (const Error&) {
      return true;
    }
  };
  const RgbView half{bytes.data(), 5, 8, {.right_px = 0.5}};
  EXPECT_TRUE(refused(half)) << "without a target";
  plan.target_width_px = 2;
  plan.target_height_px = 3;
  EXPECT_FALSE(refused(half));
  EXPECT_FALSE(refused({bytes.data(), 5, 8, {.left_px = 0.5}}));
  EXPECT_FALSE(refused({bytes.data(), 3, 4, {.right_px = 0.75}}));
  EXPECT_TRUE(refused({bytes.data(), 5, 8})) << "without its margin";
  EXPECT_TRUE(refused({bytes.data(), 4, 8}));
  EXPECT_TRUE(refused({bytes.data(), 3, 8, {.right_px = 0.75}})) << "sides reduced differently";
}

TEST(Resized, HasTheSizeAskedForAndKeepsColours) {
  const std::vector<std::uint8_t> blue{0, 0, 255, 0, 0, 255};
  const media::Image image = resized({blue.data(), 2, 1}, 3, 4, media::ResizeEngine::kPillow);
  EXPECT_EQ(image.width_px, 3);
  EXPECT_EQ(image.height_px, 4);
  ASSERT_EQ(image.rgb.size(), 3U * 4 * 3);
  for (std::size_t i = 0; i < image.rgb.size(); ++i) EXPECT_EQ(image.rgb[i], i % 3 == 2 ? 255 : 0);
}

TEST(Paste, CopiesAnImageToItsPlaceAndNothingElse) {
  const std::vector<std::uint8_t> image{1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4};  // 2 x 2
  std::vector<std::uint8_t> canvas(3 * 4 * 3, 9);                             // 3 wide, 4 high
  paste({image.data(), 2, 2}, 1, 2, 3, canvas);
  std::vector<int> reds;
  for (std::size_t i = 0; i < canvas.size(); i += 3) reds.push_back(canvas[i]);
  EXPECT_EQ(reds, (std::vector<int>{9, 9, 9, 9, 9, 9, 9, 1, 2, 9, 3, 4}));
}

using Indices = std::vector<std::int64_t>;

TEST(SpreadFrames, GoFromTheFirstToTheLastAndRoundDown) {
  EXPECT_EQ(spread_frames(0, 99, 8), (Indices{0, 14, 28, 42, 56, 70, 84, 99}));
  EXPECT_EQ(spread_frames(3, 5, 2), (Indices{3, 5}));
  EXPECT_EQ(spread_frames(3, 5, 1), Indices{3});
  EXPECT_EQ(spread_frames(0, 1, 4), (Indices{0, 0, 0, 1}));
}

TEST(SampleEvenly, TakesFramesOfTheRateUpToANumber) {
  using Frames = std::vector<std::int64_t>;
  EXPECT_EQ(sample_evenly(30, 10, 1, 8), (Frames{0, 14, 29}));
  EXPECT_EQ(sample_evenly(30, 10, 2, 4), (Frames{0, 9, 19, 29}));
  EXPECT_EQ(sample_evenly(30, 0, 2, 3), (Frames{0, 14, 29})) << "of an unknown rate";
  EXPECT_EQ(sample_evenly(3, 30, 2, 8), (Frames{0})) << "at least one";
}

TEST(PixelOffsets, ReachTheLargestInt32) {
  constexpr std::int64_t kMost = 2147483647;
  EXPECT_NO_THROW(check_pixel_offsets(kMost, 1));
  test::expect_error(ErrorCode::kInvalidArgument,
                     "sub-batch of 7 items: expected at most 2147483647 bytes of resized pixels, "
                     "got 2147483648",
                     [] { check_pixel_offsets(kMost + 1, 7); });
}

}  // namespace
}  // namespace fovea::common
