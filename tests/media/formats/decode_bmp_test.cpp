#include <gtest/gtest.h>

#include <algorithm>

#include "media/interrupted.h"
#include "media/test_images.h"
#include "support/expect_error.h"

namespace fovea::media {
namespace {

using test::append_number;
using test::Bytes;
using test::decode;
using test::expect_error;

struct BmpSpec {
  std::uint32_t width = 1;
  std::uint32_t height = 1;
  std::uint32_t bits = 24;
  std::uint32_t compression = 0;
  std::uint32_t header_bytes = 40;
  Bytes palette = {};
};

Bytes bmp(const BmpSpec& spec, const Bytes& pixels) {
  Bytes file{'B', 'M'};
  append_number(file, 0, 4, false);  // the size of the file; nobody looks at it
  append_number(file, 0, 4, false);
  append_number(file, 14 + spec.header_bytes + static_cast<std::uint32_t>(spec.palette.size()), 4,
                false);
  append_number(file, spec.header_bytes, 4, false);
  append_number(file, spec.width, 4, false);
  append_number(file, spec.height, 4, false);
  append_number(file, 1, 2, false);
  append_number(file, spec.bits, 2, false);
  append_number(file, spec.compression, 4, false);
  for (int i = 0; i < 3; ++i) append_number(file, 0, 4, false);
  append_number(file, static_cast<std::uint32_t>(spec.palette.size() / 4), 4, false);
  append_number(file, 0, 4, false);
  file.resize(14 + spec.header_bytes);
  file.insert(file.end(), spec.palette.begin(), spec.palette.end());
  file.insert(file.end(), pixels.begin(), pixels.end());
  return file;
}

const Bytes kTwoColors{3, 2, 1, 0, 6, 5, 4, 0};

TEST(DecodeBmp, RowsRunFromTheBottomUp) {
  const Image image = decode(bmp({.width = 1, .height = 2}, {3, 2, 1, 0, 6, 5, 4, 0}));
  EXPECT_EQ(image.width_px, 1);
  EXPECT_EQ(image.height_px, 2);
  EXPECT_EQ(image.rgb, (Bytes{4, 5, 6, 1, 2, 3}));
}

TEST(DecodeBmp, ANegativeHeightTurnsThemOver) {
  const Image image = decode(bmp({.width = 1, .height = 0xFFFFFFFE}, {3, 2, 1, 0, 6, 5, 4, 0}));
  EXPECT_EQ(image.rgb, (Bytes{1, 2, 3, 4, 5, 6}));
}

TEST(DecodeBmp, RunsThatEndEarlyAreCorrupt) {
  const BmpSpec spec{.width = 4, .height = 2, .bits = 8, .compression = 1, .palette = kTwoColors};
  EXPECT_EQ(decode(bmp(spec, {4, 1, 0, 0, 4, 0, 0, 1})).rgb.size(), 24U);
  expect_error(ErrorCode::kCorruptData, "image: cannot decode BMP: its runs end 3 pixels too early",
               [&] {
                 (void)decode(bmp(spec, {4, 1, 0, 0, 1, 0, 0, 1}));
               });
}

TEST(DecodeBmp, RowsThatEndEarlyAreCorrupt) {
  expect_error(ErrorCode::kCorruptData, "image: cannot decode BMP: the file ends in row 1 of 2",
               [&] {
                 (void)decode(bmp({.width = 1, .height = 2}, {3, 2, 1, 0, 6, 5}));
               });
}

TEST(DecodeBmp, UnknownKindsAreUnsupported) {
  expect_error(ErrorCode::kUnsupported, "image: BMP headers of 41 bytes are not supported", [&] {
    (void)decode(bmp({.header_bytes = 41}, {0, 0, 0, 0}));
  });
  expect_error(ErrorCode::kUnsupported, "image: BMP with 7 bits per pixel is not supported", [&] {
    (void)decode(bmp({.bits = 7}, {0, 0, 0, 0}));
  });
  expect_error(ErrorCode::kUnsupported, "image: BMP compression 5 is not supported", [&] {
    (void)decode(bmp({.compression = 5}, {0, 0, 0, 0}));
  });
  expect_error(ErrorCode::kUnsupported, "BMP compression 1 of 24 bits per pixel is not supported",
               [&] {
                 (void)decode(bmp({.compression = 1}, {0, 0, 0, 0}));
               });
}

TEST(DecodeBmp, AShortHeaderIsCorrupt) {
  Bytes file = bmp({}, {});
  file.resize(40);
  expect_error(ErrorCode::kCorruptData, "image: expected a BMP header of at least 54 bytes, got 40",
               [&] { (void)decode(file); });
}

TEST(DecodeBmp, ASizeWithoutPixelsIsRefusedBeforeItTakesMemory) {
  expect_error(ErrorCode::kInvalidArgument, "image: expected sides of at most",
               [&] { (void)decode(bmp({.width = 0x7FFFFFFF, .height = 0x7FFFFFFF}, {})); });
  expect_error(ErrorCode::kCorruptData, "image: expected sides of at least 1 pixel, got 0 x 1",
               [&] { (void)decode(bmp({.width = 0}, {})); });
}

TEST(DecodeBmp, StopsWhenAskedTo) {
  test::expect_stops([] { (void)decode(bmp({.width = 1, .height = 1}, {1, 2, 3, 0})); });
  const BmpSpec spec{.width = 4, .height = 1, .bits = 8, .compression = 1, .palette = kTwoColors};
  test::expect_stops([&] { (void)decode(bmp(spec, {4, 1, 0, 1})); });
}

}  // namespace
}  // namespace fovea::media
