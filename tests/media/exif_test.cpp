#include "media/exif.h"

#include <gtest/gtest.h>

#include "media/test_images.h"

namespace fovea::media {
namespace {

using test::Bytes;

TEST(Exif, ReadsBothByteOrders) {
  for (int value = 1; value <= 8; ++value) {
    EXPECT_EQ(static_cast<int>(exif_orientation(test::exif_block(value, false))), value);
    EXPECT_EQ(static_cast<int>(exif_orientation(test::exif_block(value, true))), value);
  }
}

TEST(Exif, PassesOverThePrefix) {
  Bytes block = {'E', 'x', 'i', 'f', 0, 0};
  for (const std::uint8_t byte : test::exif_block(6, true)) block.push_back(byte);
  EXPECT_EQ(exif_orientation(block), Orientation::kRotate90);
}

TEST(Exif, NothingIsUpright) { EXPECT_EQ(exif_orientation({}), Orientation::kUpright); }

TEST(Exif, ValuesOutOfRangeAreUpright) {
  for (const int value : {0, 9, 65535})
    EXPECT_EQ(exif_orientation(test::exif_block(value, false)), Orientation::kUpright) << value;
}

TEST(Exif, AnotherTypeIsUpright) {
  Bytes block = test::exif_block(6, false);
  block[8 + 2 + 12 + 2] = 4;  // type of the second entry: LONG
  EXPECT_EQ(exif_orientation(block), Orientation::kUpright);
}

TEST(Exif, AnotherByteOrderMarkIsUpright) {
  Bytes block = test::exif_block(6, false);
  block[0] = 'X';
  EXPECT_EQ(exif_orientation(block), Orientation::kUpright);
}

TEST(Exif, EveryPrefixIsSafe) {
  const Bytes block = test::exif_block(6, false);
  for (std::size_t size = 0; size < block.size(); ++size) {
    const Bytes prefix(block.begin(), block.begin() + static_cast<std::ptrdiff_t>(size));
    const Orientation orientation = exif_orientation(prefix);
    EXPECT_TRUE(orientation == Orientation::kUpright || orientation == Orientation::kRotate90);
  }
}

TEST(Exif, ADirectoryBeyondTheBlockIsUpright) {
  Bytes block = test::exif_block(6, false);
  for (std::size_t i = 4; i < 8; ++i) block[i] = 0xFF;
  EXPECT_EQ(exif_orientation(block), Orientation::kUpright);
}

TEST(Exif, OrientationsUndoEachOther) {
  const Image image{.width_px = 3, .height_px = 2, .rgb = test::checksum_pattern(3, 2, 3)};
  const auto twice = [&](Orientation first, Orientation second) {
    return apply_orientation(apply_orientation(image, first), second).rgb;
  };
  EXPECT_EQ(twice(Orientation::kRotate90, Orientation::kRotate270), image.rgb);
  EXPECT_EQ(twice(Orientation::kRotate180, Orientation::kRotate180), image.rgb);
  EXPECT_EQ(twice(Orientation::kMirrorHorizontal, Orientation::kMirrorHorizontal), image.rgb);
  EXPECT_EQ(twice(Orientation::kMirrorVertical, Orientation::kMirrorVertical), image.rgb);
  EXPECT_EQ(twice(Orientation::kTranspose, Orientation::kTranspose), image.rgb);
  EXPECT_EQ(twice(Orientation::kTransverse, Orientation::kTransverse), image.rgb);
}

}  // namespace
}  // namespace fovea::media
