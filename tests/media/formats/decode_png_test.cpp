#include <gtest/gtest.h>

#include <zlib.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "media/interrupted.h"
#include "media/profile.h"
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
  const ProfileRules rules = rules_of(options.profile);
  Bytes rgb;
  for (std::size_t i = 0; i < samples.size(); i += channels) {
    const std::uint16_t* s = samples.data() + i;
    Bytes pixel(3);
    bool composites = false;
    switch (spec.color) {
      case PngColor::kGrey: pixel.assign(3, grey_level(spec, s[0])); break;
      case PngColor::kPalette:
        std::copy_n(spec.palette.begin() + s[0] * 3, 3, pixel.begin());
        break;
      case PngColor::kGreyAlpha:
        pixel.assign(3, high(s[0]));
        composites = rules.compositing == Compositing::kEvery ||
                     (rules.compositing == Compositing::kRgba && spec.bits == 16);
        break;
      case PngColor::kRgba: composites = rules.compositing != Compositing::kNone; [[fallthrough]];
      case PngColor::kRgb: std::transform(s, s + 3, pixel.begin(), high);
    }
    if (composites) {
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

TEST(DecodePng, AlphaIsWhatTheProfileMakesOfIt) {
  for (const MediaProfile profile : {MediaProfile::kVllm, MediaProfile::kVllm023,
                                     MediaProfile::kTransformers, MediaProfile::kSglang})
    for (const PngColor color : {PngColor::kGreyAlpha, PngColor::kRgba})
      for (const int bits : {8, 16})
        for (const bool interlaced : {false, true})
          expect_decodes(
              {.width = 9, .height = 7, .color = color, .bits = bits, .interlaced = interlaced},
              {.profile = profile});
}

MediaOptions on_blue() {
  MediaOptions options;
  std::ranges::copy(std::array<std::uint8_t, 3>{0, 100, 200}, options.background);
  return options;
}

TEST(DecodePng, AlphaIsCompositedOnTheBackground) {
  for (const bool interlaced : {false, true})
    expect_decodes({.width = 9, .height = 7, .color = PngColor::kRgba, .interlaced = interlaced},
                   on_blue());
}

TEST(DecodePng, TransparencyEntriesAreIgnoredUnlessTheProfileCompositesAll) {
  for (const MediaProfile profile :
       {MediaProfile::kVllm023, MediaProfile::kTransformers, MediaProfile::kSglang})
    for (const Layout& layout : kLayouts)
      if (layout.color != PngColor::kGreyAlpha && layout.color != PngColor::kRgba)
        expect_decodes({.width = 9,
                        .height = 7,
                        .color = layout.color,
                        .bits = layout.bits,
                        .transparent = true},
                       {.profile = profile});
}

TEST(DecodePng, TransparencyEntriesShowTheBackground) {
  const std::vector<std::uint16_t> two_colors = {0, 0, 0, 1, 1, 1};
  EXPECT_EQ(decode(test::encode_png({.width = 2, .transparent = true}, two_colors), on_blue()).rgb,
            (Bytes{0, 100, 200, 1, 1, 1}));
  const std::vector<std::uint16_t> two_indices = {0, 1};
  const Bytes palette = {10, 20, 30, 40, 50, 60};  // its alpha is 0, 128
  EXPECT_EQ(
      decode(test::encode_png(
                 {.width = 2, .color = PngColor::kPalette, .palette = palette, .transparent = true},
                 two_indices),
             on_blue())
          .rgb,
      (Bytes{0, 100, 200, 20, 75, 130}));
}

TEST(DecodePng, ADamagedTransparencyEntryIsCorrupt) {
  Bytes file = test::encode_png({.transparent = true}, std::vector<std::uint16_t>{1, 2, 3});
  constexpr std::string_view kType = "tRNS";
  const auto type = std::search(file.begin(), file.end(), kType.begin(), kType.end());
  ASSERT_NE(type, file.end());
  *(type + 4) ^= 1;
  expect_error(ErrorCode::kCorruptData, "image: the tRNS chunk has a wrong checksum",
               [&] { (void)decode(file); });
  EXPECT_NO_THROW((void)decode(file, {.profile = MediaProfile::kSglang})) << "it is not read";
}

TEST(DecodePng, AShortTransparencyEntryIsCorrupt) {
  // A grey image, whose entry has 2 bytes, that claims to be RGB.
  Bytes file = test::encode_png({.color = PngColor::kGrey, .transparent = true},
                                std::vector<std::uint16_t>{1});
  constexpr std::size_t kColorType = 25;
  constexpr std::size_t kHeaderCrc = 29;
  file[kColorType] = 2;
  const std::uint32_t crc = static_cast<std::uint32_t>(crc32(0, file.data() + 12, 17));
  for (std::size_t i = 0; i < 4; ++i)
    file[kHeaderCrc + i] = static_cast<std::uint8_t>(crc >> (24 - 8 * i));
  expect_error(ErrorCode::kCorruptData, "image: expected a tRNS chunk of 6 bytes, got 2",
               [&] { (void)decode(file); });
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

/// The checksum of the last IDAT chunk, and IEND.
constexpr std::size_t kBehindPixels = 4 + 12;

TEST(DecodePng, EveryTruncationOfThePixelsIsCorrupt) {
  const Bytes file = small_png();
  for (std::size_t size = 8; size < file.size() - kBehindPixels; ++size)
    expect_error(ErrorCode::kCorruptData, "image: ", [&] {
      (void)decode(Bytes(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size)));
    });
}

// As Pillow does.
TEST(DecodePng, WhatFollowsThePixelsMayBeMissingOrDamaged) {
  for (const PngColor color : {PngColor::kRgb, PngColor::kGrey})
    for (const bool interlaced : {false, true}) {
      SCOPED_TRACE(interlaced);
      const PngSpec spec{.width = 9, .height = 7, .color = color, .interlaced = interlaced};
      const Bytes file = test::encode_png(spec, samples_of(spec));
      const Bytes expected = decode(file).rgb;
      for (std::size_t behind = 0; behind <= kBehindPixels; ++behind) {
        const Bytes cut(file.begin(), file.end() - static_cast<std::ptrdiff_t>(behind));
        EXPECT_EQ(decode(cut).rgb, expected) << behind;
      }
      Bytes damaged = file;
      damaged.back() ^= 1;  // the checksum of IEND
      EXPECT_EQ(decode(damaged).rgb, expected);
    }
}

TEST(DecodePng, AMissingLastRowIsCorrupt) {
  const PngSpec spec{.width = 9, .height = 7};
  const Bytes file = test::encode_png(spec, samples_of(spec));
  Bytes taller = test::encode_png({.width = 9, .height = 8}, samples_of({.width = 9, .height = 8}));
  constexpr std::size_t kHeaderBytes = 33;
  taller.resize(kHeaderBytes);
  taller.insert(taller.end(), file.begin() + kHeaderBytes, file.end());
  expect_error(ErrorCode::kCorruptData, "cannot decode PNG: Not enough image data",
               [&] { (void)decode(taller); });
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

void append_chunk(Bytes& file, std::string_view type, const Bytes& payload) {
  const auto append_u32 = [&](std::uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8)
      file.push_back(static_cast<std::uint8_t>(value >> shift));
  };
  append_u32(static_cast<std::uint32_t>(payload.size()));
  const std::size_t start = file.size();
  file.insert(file.end(), type.begin(), type.end());
  file.insert(file.end(), payload.begin(), payload.end());
  append_u32(static_cast<std::uint32_t>(
      crc32(0, file.data() + start, static_cast<unsigned>(payload.size() + 4))));
}

/// A black pixel whose stream goes on with this many zeros.
Bytes pixel_and_zeros(std::size_t num_zeros) {
  const Bytes samples(1 + 3 + num_zeros);
  Bytes stream(compressBound(samples.size()));
  uLongf size = stream.size();
  constexpr int kFast = 1;
  EXPECT_EQ(compress2(stream.data(), &size, samples.data(), samples.size(), kFast), Z_OK);
  stream.resize(size);
  constexpr std::size_t kHeaderBytes = 33;
  Bytes file = test::encode_png({}, std::vector<std::uint16_t>{0, 0, 0});
  file.resize(kHeaderBytes);
  append_chunk(file, "IDAT", stream);
  append_chunk(file, "IEND", {});
  return file;
}

TEST(DecodePng, SomeBytesBehindTheLastRowAreHarmless) {
  EXPECT_EQ(decode(pixel_and_zeros(100'000)).rgb, Bytes(3));
}

TEST(DecodePng, AStreamThatGoesOnBehindTheLastRowIsNotReadOn) {
  Bytes file = pixel_and_zeros(std::size_t{32} << 20);
  file.resize(file.size() / 2);
  file[file.size() - 1] ^= 0x55;
  EXPECT_EQ(decode(file).rgb, Bytes(3));
}

TEST(DecodePng, StopsWhenAskedTo) {
  for (const bool interlaced : {false, true}) {
    const PngSpec spec{.width = 9, .height = 7, .interlaced = interlaced};
    test::expect_stops([&] { (void)decode(test::encode_png(spec, samples_of(spec))); });
  }
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
