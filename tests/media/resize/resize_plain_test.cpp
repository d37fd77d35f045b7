// Resizing between four neighbours.
#include "media/resize/resize_plain.h"

#include <gtest/gtest.h>

#include <vector>

#include "media/interrupted.h"
#include "support/expect_error.h"

namespace fovea::media {
namespace {

using PlainBytes = std::vector<std::uint8_t>;

/// A grey image, [height, width], resized.
PlainBytes resize_grey(const PlainBytes& grey, std::int64_t width, std::int64_t height,
                       std::int64_t to_width, std::int64_t to_height) {
  PlainBytes rgb;
  for (const std::uint8_t level : grey) rgb.insert(rgb.end(), 3, level);
  PlainBytes out(static_cast<std::size_t>(to_width * to_height * 3));
  resize_rgb_plain({.src = rgb,
                    .src_width_px = width,
                    .src_height_px = height,
                    .dst = out,
                    .dst_width_px = to_width,
                    .dst_height_px = to_height});
  PlainBytes first;
  for (std::size_t i = 0; i < out.size(); i += 3) {
    EXPECT_TRUE(out[i] == out[i + 1] && out[i] == out[i + 2]) << "channels are resized alike";
    first.push_back(out[i]);
  }
  return first;
}

// torch.nn.functional.interpolate(mode="bilinear") of PyTorch 2.15 and round give these.
TEST(ResizePlain, HasTheBytesOfTorch) {
  EXPECT_EQ(resize_grey({0, 9, 200, 31}, 4, 1, 7, 1), (PlainBytes{0, 3, 8, 105, 188, 91, 31}));
  EXPECT_EQ(resize_grey({0, 9, 200, 31}, 4, 1, 2, 1), (PlainBytes{4, 116}));
  EXPECT_EQ(resize_grey({0, 10, 20, 250}, 2, 2, 3, 3),
            (PlainBytes{0, 5, 10, 10, 70, 130, 20, 135, 250}));
}

TEST(ResizePlain, ASmallerImageHasFourNeighboursAlone) {
  EXPECT_EQ(resize_grey({255, 0, 0, 0, 0, 0, 0, 255}, 8, 1, 2, 1), (PlainBytes{0, 0}))
      << "the ends are far from the places between pixels 1 and 2, and 5 and 6";
}

TEST(ResizePlain, AnImageThatKeepsItsSizeKeepsItsBytes) {
  EXPECT_EQ(resize_grey({0, 1, 128, 254, 255, 7}, 3, 2, 3, 2),
            (PlainBytes{0, 1, 128, 254, 255, 7}));
  EXPECT_EQ(resize_grey({7}, 1, 1, 2, 2), (PlainBytes{7, 7, 7, 7}));
}

TEST(ResizePlain, RefusesImagesOfAnotherSizeThanTheirMemory) {
  PlainBytes six(6);
  PlainBytes three(3);
  test::expect_error(ErrorCode::kInvalidArgument, "source of 1 x 1 pixels must have 3 bytes, got 6",
                     [&] {
                       resize_rgb_plain({six, 1, 1, three, 1, 1});
                     });
  test::expect_error(ErrorCode::kInvalidArgument, "result of 1 x 1 pixels must have 3 bytes, got 6",
                     [&] {
                       resize_rgb_plain({three, 1, 1, six, 1, 1});
                     });
  test::expect_error(ErrorCode::kInvalidArgument, "result must have sides >= 1", [&] {
    resize_rgb_plain({six, 2, 1, three, 0, 1});
  });
}

TEST(ResizePlain, StopsWhenAskedTo) {
  test::expect_stops([] { (void)resize_grey(PlainBytes(48), 8, 6, 4, 3); });
}

}  // namespace
}  // namespace fovea::media
