#include "bench/png_writer.h"

#include <gtest/gtest.h>

#include "bench/random.h"
#include "media/decode_image.h"

namespace fovea::cli {
namespace {

void expect_round_trip(std::int64_t width_px, std::int64_t height_px) {
  std::vector<std::uint8_t> rgb(static_cast<std::size_t>(width_px * height_px * 3));
  Random(7).fill(rgb);
  // The decoder checks every checksum of the file.
  const media::Image image =
      media::decode_image(encode_png(rgb, width_px, height_px), "made.png", MediaOptions{});
  EXPECT_EQ(image.width_px, width_px);
  EXPECT_EQ(image.height_px, height_px);
  EXPECT_EQ(image.rgb, rgb);
}

TEST(PngWriter, DecodesToTheSamePixels) { expect_round_trip(37, 11); }

TEST(PngWriter, SmallestImage) { expect_round_trip(1, 1); }

// 21845 pixels are 65535 bytes, and the filter byte makes the row one byte longer than a block.
TEST(PngWriter, RowsAroundTheLengthOfABlock) {
  for (const std::int64_t width : {21844, 21845, 21846}) expect_round_trip(width, 1);
}

TEST(PngWriter, ManyBlocks) { expect_round_trip(300, 400); }

}  // namespace
}  // namespace fovea::cli
