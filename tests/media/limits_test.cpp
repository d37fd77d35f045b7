#include "media/limits.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace fovea::media {
namespace {

using test::expect_error;

constexpr MediaLimits kLimits{
    .max_image_pixels = 12, .max_image_side_px = 6, .max_video_frames = 3, .max_item_bytes = 100};

TEST(Limits, AreInclusive) {
  check_image_size(4, 3, "x", kLimits);
  check_image_size(2, 6, "x", kLimits);
  check_num_frames(3, "x", kLimits);
  check_decode_bytes(100, "x", kLimits);
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
  expect_error(kCode, "a.png: expected an image that takes at most 100 bytes to decode, got 101",
               [] { check_decode_bytes(101, "a.png", kLimits); });
}

}  // namespace
}  // namespace fovea::media
