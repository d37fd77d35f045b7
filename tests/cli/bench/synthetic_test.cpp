#include "bench/synthetic.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include "media/decode_image.h"

namespace fovea::cli {
namespace {

TEST(Random, GivesTheValuesOfTheAlgorithm) {
  Random random(1234567);  // the usual known answers of SplitMix64
  for (const std::uint64_t expected :
       {6457827717110365317U, 3203168211198807973U, 9817491932198370423U, 4593380528125082431U,
        16408922859458223821U}) {
    EXPECT_EQ(random.next(), expected);
  }
}

TEST(Random, UniformNumbersFillTheInterval) {
  Random random(0);
  double sum = 0;
  for (int i = 0; i < 10000; ++i) {
    const double value = random.uniform();
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    sum += value;
  }
  EXPECT_NEAR(sum / 10000, 0.5, 0.015);  // five standard deviations
}

TEST(Random, WholeNumbersReachBothEnds) {
  Random random(0);
  std::array<int, 3> counts{};
  for (int i = 0; i < 3000; ++i) ++counts.at(static_cast<std::size_t>(random.between(-1, 1) + 1));
  for (const int count : counts) EXPECT_NEAR(count, 1000, 130);  // five standard deviations
  EXPECT_EQ(random.between(7, 7), 7);
  for (int i = 0; i < 100; ++i) {
    EXPECT_GE(random.between(0, std::numeric_limits<std::int64_t>::max()), 0);
  }
}

TEST(Random, BytesComeLowestFirst) {
  Random bits(9);
  const std::uint64_t first = bits.next();
  const std::uint64_t second = bits.next();
  std::array<std::uint8_t, 11> bytes{};
  Random(9).fill(bytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::uint64_t word = i < 8 ? first : second;
    EXPECT_EQ(bytes[i], static_cast<std::uint8_t>(word >> (i % 8 * 8)));
  }
}

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
