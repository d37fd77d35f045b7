#include "media/limits.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace fovea::media {
namespace {

using test::expect_error;

constexpr MediaLimits kLimits{.max_image_pixels = 12,
                              .max_image_side_px = 6,
                              .max_video_frames = 3,
                              .max_frame_pixels = 9,
                              .max_video_pixels = 20,
                              .max_item_bytes = 100};

TEST(Limits, AreInclusive) {
  check_image_size(4, 3, "x", kLimits);
  check_image_size(2, 6, "x", kLimits);
  check_num_frames(3, "x", kLimits);
  check_decode_bytes(100, "x", kLimits);
  check_frame_size(3, 3, "x", kLimits);
  check_video_size(5, 2, 2, "x", kLimits);
}

TEST(Limits, NameWhatTheyAllowAndWhatCame) {
  constexpr ErrorCode kCode = ErrorCode::kInvalidArgument;
  expect_error(kCode, "a.png: expected sides of at most 6 pixels, got 7 x 1",
               [] { check_image_size(7, 1, "a.png", kLimits); });
  expect_error(kCode, "a.png: expected sides of at most 6 pixels, got 1 x 7",
               [] { check_image_size(1, 7, "a.png", kLimits); });
  expect_error(kCode, "a.png: expected at most 12 pixels, got 5 x 3",
               [] { check_image_size(5, 3, "a.png", kLimits); });
  expect_error(kCode, "clip: expected at most 3 frames, got 4",
               [] { check_num_frames(4, "clip", kLimits); });
  expect_error(kCode, "clip: expected frames of at most 9 pixels, got 5 x 2",
               [] { check_frame_size(5, 2, "clip", kLimits); });
  expect_error(kCode, "clip: expected at most 12 pixels, got 4 x 4",
               [] { check_video_size(1, 4, 4, "clip", kLimits); });
  expect_error(kCode, "clip: expected at most 20 pixels in all frames, got 6 of 2 x 2",
               [] { check_video_size(6, 2, 2, "clip", kLimits); });
  expect_error(kCode, "a.png: expected an image that takes at most 100 bytes to decode, got 101",
               [] { check_decode_bytes(101, "a.png", kLimits); });
}

TEST(Limits, OfVideosAreNoneUnlessSet) {
  constexpr MediaLimits kDefaults{};
  check_video_size(std::int64_t{1} << 40, 60'000, 2'000, "x", kDefaults);
}

TEST(Limits, OfVideosWithstandAnyNumber) {
  constexpr MediaLimits kOne{.max_video_pixels = 1};
  expect_error(ErrorCode::kInvalidArgument, "expected at most 1 pixels in all frames",
               [&] { check_video_size(std::int64_t{1} << 62, 4, 4, "x", kOne); });
}

}  // namespace
}  // namespace fovea::media
