// Which orientation an image has; profiles_test.cpp has the cases in files.
#include "media/orientation.h"

#include <gtest/gtest.h>

#include <string_view>

#include "media/test_images.h"

namespace fovea::media {
namespace {

using std::string_view_literals::operator""sv;
using test::Bytes;

/// The first byte of the second entry of test::exif_block(), that of the orientation.
constexpr std::size_t kEntry = 8 + 2 + 12;

Bytes bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

Orientation of_exif(const Bytes& block) { return read_orientation(block, {}); }
Orientation of_xmp(std::string_view packet) { return read_orientation({}, bytes_of(packet)); }

TEST(Orientation, OfBothByteOrders) {
  for (int value = 1; value <= 8; ++value) {
    EXPECT_EQ(static_cast<int>(of_exif(test::exif_block(value, false))), value);
    EXPECT_EQ(static_cast<int>(of_exif(test::exif_block(value, true))), value);
  }
}

TEST(Orientation, PassesOverOneOrTwoPrefixes) {
  Bytes block = test::exif_block(6, true);
  for (int prefixes = 0; prefixes <= 3; ++prefixes) {
    EXPECT_EQ(of_exif(block), prefixes <= 2 ? Orientation::kRotate90 : Orientation::kUpright);
    const Bytes prefix = bytes_of("Exif\0\0"sv);
    block.insert(block.begin(), prefix.begin(), prefix.end());
  }
}

TEST(Orientation, OfNothingIsUpright) { EXPECT_EQ(of_exif({}), Orientation::kUpright); }

TEST(Orientation, ValuesOutOfRangeAreUpright) {
  for (const int value : {0, 9, 262, 65535})
    EXPECT_EQ(of_exif(test::exif_block(value, false)), Orientation::kUpright) << value;
}

TEST(Orientation, TakesEveryTypeOfNumber) {
  Bytes block = test::exif_block(6, false);
  for (std::uint8_t type = 0; type <= 20; ++type) {
    block[kEntry + 2] = type;
    const bool whole_number =
        type == 3 || type == 4 || type == 6 || type == 8 || type == 9 || type == 13;
    EXPECT_EQ(of_exif(block), whole_number ? Orientation::kRotate90 : Orientation::kUpright)
        << static_cast<int>(type);
  }
}

TEST(Orientation, AnotherByteOrderMarkIsUpright) {
  Bytes block = test::exif_block(6, false);
  block[0] = 'X';
  EXPECT_EQ(of_exif(block), Orientation::kUpright);
}

TEST(Orientation, EveryPrefixIsSafe) {
  const Bytes block = test::exif_block(6, false);
  for (std::size_t size = 0; size < block.size(); ++size) {
    const Bytes prefix(block.begin(), block.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_EQ(of_exif(prefix),
              size >= kEntry + 12 ? Orientation::kRotate90 : Orientation::kUpright);
  }
}

TEST(Orientation, ADirectoryBeyondTheBlockIsUpright) {
  Bytes block = test::exif_block(6, false);
  for (std::size_t i = 4; i < 8; ++i) block[i] = 0xFF;
  EXPECT_EQ(of_exif(block), Orientation::kUpright);
}

TEST(Orientation, AValueBeyondTheBlockEndsTheDirectory) {
  Bytes block = test::exif_block(6, false);
  block[kEntry - 12 + 4] = 4;     // four values of the first entry, 8 bytes
  block[kEntry - 12 + 8] = 0x40;  // that would lie here
  EXPECT_EQ(of_exif(block), Orientation::kUpright);
  block[kEntry - 12 + 8] = 0;
  EXPECT_EQ(of_exif(block), Orientation::kRotate90);
}

TEST(Orientation, OfXmpIsAnAttributeOrAnElement) {
  EXPECT_EQ(of_xmp(R"(<a tiff:Orientation="6"/>)"), Orientation::kRotate90);
  EXPECT_EQ(of_xmp("<tiff:Orientation>8<"), Orientation::kRotate270);
  EXPECT_EQ(of_xmp(R"(tiff:Orientation tiff:Orientation="3")"), Orientation::kRotate180);
  for (const char* packet : {"", "tiff:Orientation", "tiff:Orientation=\"", "tiff:Orientation='6'",
                             "tiff:Orientation=\"x\"", "tiff:Orientation=\"9\""})
    EXPECT_EQ(of_xmp(packet), Orientation::kUpright) << packet;
}

TEST(Orientation, OfXmpCountsIfExifHasNone) {
  const Bytes xmp = bytes_of("tiff:Orientation=\"3\"");
  Bytes block = test::exif_block(6, false);
  EXPECT_EQ(read_orientation(block, xmp), Orientation::kRotate90);
  block[kEntry] = 0x13;  // another tag
  EXPECT_EQ(read_orientation(block, xmp), Orientation::kRotate180);
  block[0] = 'X';
  EXPECT_EQ(read_orientation(block, xmp), Orientation::kUpright) << "Pillow gives up";
}

}  // namespace
}  // namespace fovea::media
