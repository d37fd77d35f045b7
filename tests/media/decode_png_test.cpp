#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "media/rgb_convert.h"
#include "media/test_images.h"
#include "support/expect_error.h"

namespace fovea::media {
namespace {

using test::Bytes;
using test::decode;
using test::expect_error;
using test::PngColor;
using test::PngSpec;

struct Layout {
  PngColor color;
  int bits;
};

/// Every layout of the PNG format.
constexpr Layout kLayouts[] = {
    {PngColor::kGrey, 1},       {PngColor::kGrey, 2},    {PngColor::kGrey, 4},
    {PngColor::kGrey, 8},       {PngColor::kGrey, 16},   {PngColor::kRgb, 8},
    {PngColor::kRgb, 16},       {PngColor::kPalette, 1}, {PngColor::kPalette, 2},
    {PngColor::kPalette, 4},    {PngColor::kPalette, 8}, {PngColor::kGreyAlpha, 8},
    {PngColor::kGreyAlpha, 16}, {PngColor::kRgba, 8},    {PngColor::kRgba, 16}};

std::vector<std::uint16_t> samples_of(const PngSpec& spec) {
  return test::make_samples<std::uint16_t>(
      spec.width, spec.height, test::num_channels(spec.color), [&](int x, int y, int c) {
        // 16-bit samples of both one and two significant bytes.
        const int value = 31 * x + 57 * y + 101 * c + x * y;
        return (spec.bits == 16 && (x + y) % 2 == 0 ? value * 257 : value) % (1 << spec.bits);
      });
}

Bytes palette_of(const PngSpec& spec) {
  if (spec.color != PngColor::kPalette) return {};
  return test::make_samples<std::uint8_t>(
      1 << spec.bits, 1, 3, [](int entry, int, int c) { return (entry * 73 + c * 91 + 5) % 256; });
}

std::uint8_t grey_level(const PngSpec& spec, std::uint16_t sample) {
  if (spec.bits == 16) return static_cast<std::uint8_t>(std::min<int>(sample, 255));
  return static_cast<std::uint8_t>(sample * 255 / ((1 << spec.bits) - 1));
}

/// Pixels by the rules of docs/reference/image_resize.md, "Decoding to RGB".
Bytes expected_rgb(const PngSpec& spec, const std::vector<std::uint16_t>& samples,
                   const MediaOptions& options) {
  const auto channels = static_cast<std::size_t>(test::num_channels(spec.color));
  const auto high = [&](std::uint16_t v) {
    return static_cast<std::uint8_t>(spec.bits == 16 ? v >> 8 : v);
  };
  Bytes rgb;
  for (std::size_t i = 0; i < samples.size(); i += channels) {
    const std::uint16_t* s = samples.data() + i;
    Bytes pixel(3);
    bool has_alpha = false;
    switch (spec.color) {
      case PngColor::kGrey: pixel.assign(3, grey_level(spec, s[0])); break;
      case PngColor::kPalette:
        std::copy_n(spec.palette.begin() + s[0] * 3, 3, pixel.begin());
        break;
      case PngColor::kGreyAlpha:
        pixel.assign(3, high(s[0]));
        has_alpha = spec.bits == 16;  // which Pillow opens as RGBA
        break;
      case PngColor::kRgba: has_alpha = true; [[fallthrough]];
      case PngColor::kRgb: std::transform(s, s + 3, pixel.begin(), high);
    }
    if (has_alpha && options.composite_alpha) {
      const Bytes rgba = {pixel[0], pixel[1], pixel[2], high(s[channels - 1])};
      composite_rgba(rgba.data(), 1, options.background, pixel.data());
    }
    rgb.insert(rgb.end(), pixel.begin(), pixel.end());
  }
  return rgb;
}

void expect_decodes(PngSpec spec, const MediaOptions& options = {}) {
  SCOPED_TRACE(::testing::Message()
               << "color " << static_cast<int>(spec.color) << ", " << spec.bits << " bits, "
               << spec.width << " x " << spec.height << (spec.interlaced ? ", interlaced" : ""));
  spec.palette = palette_of(spec);
  const std::vector<std::uint16_t> samples = samples_of(spec);
  const Image image = decode(test::encode_png(spec, samples), options);
  EXPECT_EQ(image.width_px, spec.width);
  EXPECT_EQ(image.height_px, spec.height);
  EXPECT_EQ(image.rgb, expected_rgb(spec, samples, options));
}

TEST(DecodePng, EveryLayout) {
  for (const Layout& layout : kLayouts)
    for (const bool interlaced : {false, true})
      expect_decodes({.width = 33,
                      .height = 21,
                      .color = layout.color,
                      .bits = layout.bits,
                      .interlaced = interlaced});
}

TEST(DecodePng, OnePixelAndStrips) {
  for (const Layout& layout : kLayouts)
    for (const bool interlaced : {false, true})
      for (const auto& [width, height] : {std::pair{1, 1}, {1, 5000}, {5000, 1}})
        expect_decodes({.width = width,
                        .height = height,
                        .color = layout.color,
                        .bits = layout.bits,
                        .interlaced = interlaced});
}

TEST(DecodePng, AlphaIsDroppedOnRequest) {
  for (const int bits : {8, 16})
    for (const bool interlaced : {false, true})
      expect_decodes({.width = 9,
                      .height = 7,
                      .color = PngColor::kRgba,
                      .bits = bits,
                      .interlaced = interlaced},
                     {.composite_alpha = false});
}

TEST(DecodePng, AlphaIsCompositedOnTheBackground) {
  MediaOptions options;
  options.background[0] = 0;
  options.background[1] = 100;
  options.background[2] = 200;
  for (const bool interlaced : {false, true})
    expect_decodes({.width = 9, .height = 7, .color = PngColor::kRgba, .interlaced = interlaced},
                   options);
}

TEST(DecodePng, TransparencyEntriesAreIgnored) {
  for (const Layout& layout : kLayouts)
    if (layout.color != PngColor::kGreyAlpha && layout.color != PngColor::kRgba)
      expect_decodes({.width = 9,
                      .height = 7,
                      .color = layout.color,
                      .bits = layout.bits,
                      .transparent = true});
}

TEST(DecodePng, GammaTagsAreIgnored) {
  for (const Layout& layout : kLayouts)
    expect_decodes(
        {.width = 9, .height = 7, .color = layout.color, .bits = layout.bits, .gamma = 1.0});
}

TEST(DecodePng, SixteenBitSamplesAreClippedOrCutToTheirHighByte) {
  const std::vector<std::uint16_t> grey = {0x1234, 0x00F0};
  EXPECT_EQ(decode(test::encode_png({.width = 2, .color = PngColor::kGrey, .bits = 16}, grey)).rgb,
            (Bytes{255, 255, 255, 240, 240, 240}));
  const std::vector<std::uint16_t> color = {0x1234, 0xABCD, 0xFF80};
  EXPECT_EQ(decode(test::encode_png({.bits = 16}, color)).rgb, (Bytes{18, 171, 255}));
}

Bytes small_png() {
  const PngSpec spec{.width = 9, .height = 7};
  return test::encode_png(spec, samples_of(spec));
}

TEST(DecodePng, EveryTruncationIsCorrupt) {
  const Bytes file = small_png();
  for (std::size_t size = 8; size < file.size(); ++size)
    expect_error(ErrorCode::kCorruptData, "image: ", [&] {
      (void)decode(Bytes(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size)));
    });
}

TEST(DecodePng, TruncatedPixelsSaySo) {
  const Bytes file = small_png();
  expect_error(ErrorCode::kCorruptData, "cannot decode PNG: the file is truncated",
               [&] { (void)decode(Bytes(file.begin(), file.end() - 40)); });
}

TEST(DecodePng, DamagedPixelsAreCorrupt) {
  Bytes file = small_png();
  file[file.size() - 30] ^= 0x55;  // inside IDAT, which ends 16 bytes before the end
  expect_error(ErrorCode::kCorruptData, "cannot decode PNG", [&] { (void)decode(file); });
}

TEST(DecodePng, AMissingHeaderChunkIsCorrupt) {
  Bytes file = small_png();
  file[12] = 'X';
  expect_error(ErrorCode::kCorruptData, "does not start with an IHDR chunk",
               [&] { (void)decode(file); });
}

TEST(DecodePng, AShortHeaderIsCorrupt) {
  const Bytes file = small_png();
  expect_error(ErrorCode::kCorruptData, "expected a PNG header of 33 bytes, got 20",
               [&] { (void)decode(Bytes(file.begin(), file.begin() + 20)); });
}

TEST(DecodePng, AnUnknownColourTypeIsCorrupt) {
  Bytes file = small_png();
  file[25] = 5;
  expect_error(ErrorCode::kCorruptData, "cannot decode PNG", [&] { (void)decode(file); });
}

}  // namespace
}  // namespace fovea::media
