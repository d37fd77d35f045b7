#include <gtest/gtest.h>

#include <map>

#include "core/check.h"
#include "media/decode_image.h"
#include "media/interrupted.h"
#include "media/plugins/image_plugins.h"
#include "media/test_images.h"
#include "support/expect_error.h"

namespace fovea::media {
namespace {

using test::append_number;
using test::Bytes;
using test::decode;
using test::expect_error;

class DecodeTiff : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const ImagePluginStatus& plugin : image_plugin_status())
      if (plugin.format == "tiff" && plugin.text.starts_with("not used"))
        GTEST_SKIP() << plugin.text;
  }
};

using Fields = std::map<std::uint16_t, std::uint32_t>;

constexpr std::uint16_t kWidth = 256;
constexpr std::uint16_t kHeight = 257;
constexpr std::uint16_t kBits = 258;
constexpr std::uint16_t kCompression = 259;
constexpr std::uint16_t kPhotometric = 262;
constexpr std::uint16_t kOffset = 273;
constexpr std::uint16_t kOrientation = 274;
constexpr std::uint16_t kSamples = 277;
constexpr std::uint16_t kRows = 278;
constexpr std::uint16_t kBytes = 279;
constexpr std::uint16_t kTileWidth = 322;
constexpr std::uint16_t kTileHeight = 323;
constexpr std::uint16_t kTileOffset = 324;
constexpr std::uint16_t kTileBytes = 325;

/// A grey image of 2 x 3 pixels in one strip, with some fields changed, or removed if they are 0.
Bytes tiff(const Fields& changes = {}, const Bytes& pixels = {1, 2, 3, 4, 5, 6}) {
  Fields fields{{kWidth, 2},  {kHeight, 3}, {kBits, 8},  {kCompression, 1}, {kPhotometric, 1},
                {kOffset, 1}, {kRows, 3},   {kBytes, 0}, {kSamples, 1}};
  fields[kBytes] = static_cast<std::uint32_t>(pixels.size());
  for (const auto& [tag, value] : changes) fields[tag] = value;
  std::erase_if(fields, [](const auto& field) { return field.second == 0; });
  fields[kOffset] = static_cast<std::uint32_t>(8 + 2 + 12 * fields.size() + 4);
  Bytes file{'I', 'I', 42, 0, 8, 0, 0, 0};
  append_number(file, static_cast<std::uint32_t>(fields.size()), 2, false);
  for (const auto& [tag, value] : fields) {
    append_number(file, tag, 2, false);
    append_number(file, 4, 2, false);  // a number of 4 bytes
    append_number(file, 1, 4, false);
    append_number(file, value, 4, false);
  }
  append_number(file, 0, 4, false);
  file.insert(file.end(), pixels.begin(), pixels.end());
  return file;
}

Bytes grey(std::initializer_list<std::uint8_t> levels) {
  Bytes rgb;
  for (const std::uint8_t level : levels) rgb.insert(rgb.end(), 3, level);
  return rgb;
}

TEST_F(DecodeTiff, EveryProfileTurnsItUpright) {
  const Bytes file = tiff({{kOrientation, 6}});
  for (const MediaProfile profile : {MediaProfile::kVllm, MediaProfile::kVllm023,
                                     MediaProfile::kTransformers, MediaProfile::kSglang}) {
    const Image image = decode(file, {.profile = profile});
    EXPECT_EQ(image.width_px, 3);
    EXPECT_EQ(image.rgb, grey({5, 3, 1, 6, 4, 2}));
    EXPECT_EQ(probe_image(file, "image", {.profile = profile}).width_px, 3);
  }
}

// libtiff makes RGB of it, and would turn each strip by itself.
TEST_F(DecodeTiff, WhatTheLibraryConvertsIsTurnedOnce) {
  constexpr std::uint32_t kPackBits = 32773;
  constexpr std::uint32_t kYcbcr = 6;  // blocks of 2 x 2 pixels, and their colour
  const Bytes strip{11, 10, 20, 30, 40, 128, 128, 50, 60, 70, 80, 128, 128};
  Fields fields{{kHeight, 4},           {kRows, 4},    {kCompression, kPackBits},
                {kPhotometric, kYcbcr}, {kSamples, 3}, {kOrientation, 3}};
  EXPECT_EQ(decode(tiff(fields, strip)).rgb, grey({80, 70, 60, 50, 40, 30, 20, 10}));
  fields[kOrientation] = 2;
  EXPECT_EQ(decode(tiff(fields, strip)).rgb, grey({20, 10, 40, 30, 60, 50, 80, 70}));
}

TEST_F(DecodeTiff, TruncatedPixelsAreCorrupt) {
  Bytes file = tiff();
  file.pop_back();
  expect_error(ErrorCode::kCorruptData, "image: cannot decode TIFF: ", [&] { (void)decode(file); });
}

TEST_F(DecodeTiff, OtherLayoutsAreUnsupportedByName) {
  expect_error(
      ErrorCode::kUnsupported,
      "image: TIFF compression 50000 is not supported, expected none, CCITT, LZW, Deflate, "
      "PackBits or JPEG",
      [] {
        (void)decode(tiff({{kCompression, 50000}}));
      });
  expect_error(ErrorCode::kUnsupported,
               "image: TIFF with 1 samples of 3 bits, photometric interpretation 1 and sample "
               "format 1 is not supported",
               [] {
                 (void)decode(tiff({{kBits, 3}}));
               });
}

TEST_F(DecodeTiff, SizesAreCheckedBeforeMemoryIsTaken) {
  expect_error(ErrorCode::kInvalidArgument, "image: expected sides of at most 65535 pixels", [] {
    (void)decode(tiff({{kWidth, 0x7FFFFFFF}}));
  });
  expect_error(ErrorCode::kCorruptData, "image: cannot decode TIFF: Cannot handle zero", [] {
    (void)decode(tiff({{kHeight, 0}}));
  });
  expect_error(ErrorCode::kInvalidArgument, "image: expected an image that takes at most", [] {
    (void)decode(tiff({{kRows, 0},
                       {kTileWidth, 65520},
                       {kTileHeight, 65520},
                       {kTileOffset, 8},
                       {kTileBytes, 6}}));
  });
}

TEST_F(DecodeTiff, AStripIsPartOfWhatDecodingTakes) {
  constexpr std::uint32_t kPackBits = 32773;
  const auto bytes = [](std::uint32_t compression) {
    return probe_image(
               tiff({{kWidth, 1000}, {kHeight, 1000}, {kRows, 1000}, {kCompression, compression}}),
               "image", {})
        .decode_bytes;
  };
  EXPECT_GE(bytes(kPackBits), 4'000'000U);
  EXPECT_GT(bytes(kPackBits) - bytes(1), 900'000U) << "libtiff cuts up one strip of plain rows";
}

TEST_F(DecodeTiff, StopsWhenAskedTo) {
  test::expect_stops([] { (void)decode(tiff()); });
}

}  // namespace
}  // namespace fovea::media
