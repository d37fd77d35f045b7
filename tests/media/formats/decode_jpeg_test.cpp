#include <gtest/gtest.h>
#include <turbojpeg.h>

#include <algorithm>
#include <cmath>

#include "media/decode_image.h"
#include "media/interrupted.h"
#include "media/rgb_convert.h"
#include "media/test_images.h"
#include "support/expect_error.h"

namespace fovea::media {
namespace {

using test::Bytes;
using test::decode;
using test::expect_error;

Bytes smooth_samples(int width, int height, int channels) {
  return test::make_samples<std::uint8_t>(width, height, channels, [](int x, int y, int c) {
    return static_cast<int>(127 + 90 * std::sin(x / 9.0 + c) + 30 * std::cos(y / 5.0 * (c + 1)));
  });
}

Bytes encode_rgb(int width, int height, bool progressive = false) {
  return test::encode_jpeg({.width = width, .height = height, .progressive = progressive},
                           smooth_samples(width, height, 3));
}

/// First place of a marker in a file.
Bytes::iterator find_marker(Bytes& file, std::uint8_t marker) {
  const Bytes pattern = {0xFF, marker};
  return std::search(file.begin(), file.end(), pattern.begin(), pattern.end());
}

TEST(DecodeJpeg, IsCloseToWhatWasEncoded) {
  const Bytes samples = smooth_samples(64, 48, 3);
  const Image image = decode(encode_rgb(64, 48));
  EXPECT_EQ(image.width_px, 64);
  EXPECT_EQ(image.height_px, 48);
  ASSERT_EQ(image.rgb.size(), samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i)
    EXPECT_NEAR(image.rgb[i], samples[i], 8) << i;  // quality 90 on smooth colours
}

TEST(DecodeJpeg, ProgressiveHoldsTheSameCoefficients) {
  EXPECT_EQ(decode(encode_rgb(61, 47, true)).rgb, decode(encode_rgb(61, 47)).rgb);
}

TEST(DecodeJpeg, OnePixelAndStrips) {
  for (const auto& [width, height] : {std::pair{1, 1}, {1, 5000}, {5000, 1}}) {
    const Image image = decode(encode_rgb(width, height));
    EXPECT_EQ(image.width_px, width);
    EXPECT_EQ(image.height_px, height);
    EXPECT_EQ(image.rgb.size(), static_cast<std::size_t>(width * height * 3));
  }
}

TEST(DecodeJpeg, CmykFollowsTheFormula) {
  constexpr int kWidth = 19;
  constexpr int kHeight = 11;
  const Bytes file = test::encode_jpeg({.width = kWidth, .height = kHeight, .cmyk = true},
                                       smooth_samples(kWidth, kHeight, 4));
  Bytes cmyk(kWidth * kHeight * 4);
  const tjhandle handle = tjInitDecompress();
  ASSERT_EQ(tjDecompress2(handle, file.data(), file.size(), cmyk.data(), kWidth, 0, kHeight,
                          TJPF_CMYK, TJFLAG_ACCURATEDCT),
            0);
  tjDestroy(handle);
  Bytes expected(kWidth * kHeight * 3);
  inverted_cmyk_to_rgb(cmyk.data(), kWidth * kHeight, expected.data());
  EXPECT_EQ(decode(file).rgb, expected);
}

/// Decoded by TurboJPEG, with the defaults that Pillow has.
Bytes turbojpeg_rgb(const Bytes& file, int width, int height, bool damaged = false) {
  Bytes rgb(static_cast<std::size_t>(width * height * 3));
  const tjhandle handle = tjInitDecompress();
  const int result = tjDecompress2(handle, file.data(), file.size(), rgb.data(), width, 0, height,
                                   TJPF_RGB, TJFLAG_ACCURATEDCT);
  EXPECT_EQ(result, damaged ? -1 : 0);
  if (damaged) {
    EXPECT_EQ(tjGetErrorCode(handle), TJERR_WARNING);
  }
  tjDestroy(handle);
  return rgb;
}

TEST(DecodeJpeg, EverySubsamplingHasThePixelsOfTurboJpeg) {
  for (const int subsampling :
       {TJSAMP_444, TJSAMP_422, TJSAMP_420, TJSAMP_GRAY, TJSAMP_440, TJSAMP_411})
    for (const bool progressive : {false, true})
      for (const auto& [width, height] : {std::pair{61, 47}, {16, 16}, {1, 9}}) {
        const Bytes file = test::encode_jpeg({.width = width,
                                              .height = height,
                                              .progressive = progressive,
                                              .subsampling = subsampling},
                                             smooth_samples(width, height, 3));
        EXPECT_EQ(decode(file).rgb, turbojpeg_rgb(file, width, height))
            << subsampling << (progressive ? " progressive" : "");
      }
}

TEST(DecodeJpeg, EveryReductionHasThePixelsOfTurboJpeg) {
  for (const int subsampling :
       {TJSAMP_444, TJSAMP_422, TJSAMP_420, TJSAMP_GRAY, TJSAMP_440, TJSAMP_411})
    for (const bool progressive : {false, true})
      for (const auto& [width, height] : {std::pair{61, 47}, {64, 48}, {1, 9}})
        for (const int reduction : {2, 4, 8}) {
          SCOPED_TRACE(::testing::Message()
                       << subsampling << ", " << width << "x" << height << " / " << reduction);
          const Bytes file = test::encode_jpeg({.width = width,
                                                .height = height,
                                                .progressive = progressive,
                                                .subsampling = subsampling},
                                               smooth_samples(width, height, 3));
          const Image image = decode_image(file, "image", {}, reduction);
          const int columns = (width + reduction - 1) / reduction;
          const int rows = (height + reduction - 1) / reduction;
          ASSERT_EQ(image.width_px, columns);
          ASSERT_EQ(image.height_px, rows);
          EXPECT_EQ(image.rgb, turbojpeg_rgb(file, columns, rows));
        }
}

TEST(DecodeJpeg, ReducedCmykHasTheColourOfItsPixels) {
  constexpr int kSide = 16;
  const Bytes file = test::encode_jpeg({.width = kSide, .height = kSide, .cmyk = true},
                                       Bytes(kSide * kSide * 4, 200));
  const Bytes full = decode(file).rgb;
  EXPECT_EQ(decode_image(file, "image", {}, 8).rgb, Bytes(full.begin(), full.begin() + 12));
}

TEST(DecodeJpeg, EveryTruncationIsCorrupt) {
  for (const bool progressive : {false, true})
    for (const int reduction : {1, 4}) {
      const Bytes file = encode_rgb(40, 30, progressive);
      for (std::size_t size = 3; size < file.size(); ++size)
        expect_error(ErrorCode::kCorruptData, "image: JPEG ", [&] {
          (void)decode_image(std::span(file).first(size), "image", {}, reduction);
        });
    }
}

TEST(DecodeJpeg, TruncatedPixelsSaySo) {
  const Bytes file = encode_rgb(40, 30);
  expect_error(ErrorCode::kCorruptData, "JPEG is truncated: it ends before its pixels do",
               [&] { (void)decode(Bytes(file.begin(), file.end() - 30)); });
}

TEST(DecodeJpeg, PixelsCutOutOfTheMiddleAreThoseOfLibjpeg) {
  Bytes file = encode_rgb(40, 30);
  file.erase(file.end() - 200, file.end() - 2);  // the end-of-image marker stays
  for (const int reduction : {1, 2, 4, 8})
    EXPECT_EQ(decode_image(file, "image", {}, reduction).rgb,
              turbojpeg_rgb(file, (40 + reduction - 1) / reduction,
                            (30 + reduction - 1) / reduction, true));
}

TEST(DecodeJpeg, PixelsAreWholeWithoutTheEnd) {
  Bytes file = encode_rgb(40, 30);
  const Bytes expected = decode(file).rgb;
  file.resize(file.size() - 2);
  file.insert(file.end(), 100, std::uint8_t{0});
  EXPECT_EQ(decode(file).rgb, expected);
}

TEST(DecodeJpeg, ScansWithoutAnEndAreTruncated) {
  Bytes file = encode_rgb(40, 30, true);
  file.resize(file.size() - 2);
  file.insert(file.end(), 100, std::uint8_t{0});
  expect_error(ErrorCode::kCorruptData, "JPEG is truncated: it has no end-of-image marker",
               [&] { (void)decode(file); });
}

TEST(DecodeJpeg, BytesBetweenSegmentsAreHarmless) {
  Bytes file = encode_rgb(40, 30);
  const Bytes expected = decode(file).rgb;
  const auto tables = find_marker(file, 0xDB);
  ASSERT_NE(tables, file.end());
  file.insert(tables, 5, std::uint8_t{0x11});
  EXPECT_EQ(decode(file).rgb, expected);
}

TEST(DecodeJpeg, DamageBehindHarmlessBytesIsCorrupt) {
  Bytes file = encode_rgb(40, 30);
  *(find_marker(file, 0xDB) + 1) = 0xE5;  // the tables become an application segment
  *(find_marker(file, 0xDB) + 1) = 0xE5;
  file.insert(find_marker(file, 0xC0), 5, std::uint8_t{0x11});
  expect_error(ErrorCode::kCorruptData, "cannot decode JPEG: Quantization table 0x00",
               [&] { (void)decode(file); });
}

TEST(DecodeJpeg, StopsWhenAskedTo) {
  for (const bool progressive : {false, true})
    test::expect_stops([&] { (void)decode(encode_rgb(40, 30, progressive)); });
  test::expect_stops([&] {
    (void)decode(
        test::encode_jpeg({.width = 9, .height = 9, .cmyk = true}, smooth_samples(9, 9, 4)));
  });
}

TEST(DecodeJpeg, BytesBehindTheEndAreHarmless) {
  Bytes file = encode_rgb(40, 30);
  const Bytes expected = decode(file).rgb;
  file.insert(file.end(), 100, std::uint8_t{0xAB});
  EXPECT_EQ(decode(file).rgb, expected);
}

TEST(DecodeJpeg, TwelveBitSamplesAreUnsupported) {
  Bytes file = encode_rgb(8, 8);
  const auto frame = find_marker(file, 0xC0);
  ASSERT_NE(frame, file.end());
  frame[4] = 12;
  expect_error(ErrorCode::kUnsupported, "expected a JPEG of 8 bits per sample, got 12",
               [&] { (void)decode(file); });
}

TEST(DecodeJpeg, AMissingFrameHeaderIsCorrupt) {
  Bytes file = encode_rgb(8, 8);
  const auto frame = find_marker(file, 0xC0);
  ASSERT_NE(frame, file.end());
  frame[1] = 0xE5;  // an application segment
  expect_error(ErrorCode::kCorruptData, "JPEG ends or starts its pixels before a frame header",
               [&] { (void)decode(file); });
}

TEST(DecodeJpeg, AShortFrameHeaderIsCorrupt) {
  const Bytes file = {0xFF, 0xD8, 0xFF, 0xC0, 0, 6, 8, 0, 1, 0, 0xFF, 0xD9};
  expect_error(ErrorCode::kCorruptData, "expected a JPEG frame header of at least 6 bytes, got 4",
               [&] { (void)decode(file); });
}

TEST(DecodeJpeg, AFrameHeaderCutShortIsCorrupt) {
  const Bytes file = {0xFF, 0xD8, 0xFF, 0xC0, 0, 12, 8, 0, 1, 0, 1, 3, 1, 0x11, 0, 2, 0xFF, 0xD9};
  expect_error(ErrorCode::kCorruptData, "expected a JPEG frame header of 15 bytes, got 10",
               [&] { (void)decode(file); });
}

TEST(DecodeJpeg, SamplingFactorsOutOfRangeAreCorrupt) {
  Bytes file = encode_rgb(8, 8);
  *(find_marker(file, 0xC0) + 11) = 0x15;
  expect_error(ErrorCode::kCorruptData, "expected JPEG sampling factors from 1 to 4, got 1 x 5",
               [&] { (void)decode(file); });
}

TEST(DecodeJpeg, AHeightLeftOpenIsCorrupt) {
  Bytes file = encode_rgb(8, 8);
  const auto frame = find_marker(file, 0xC0);
  ASSERT_NE(frame, file.end());
  std::fill_n(frame + 5, 2, std::uint8_t{0});
  expect_error(ErrorCode::kCorruptData, "sides of at least 1 pixel, got 8 x 0",
               [&] { (void)decode(file); });
}

TEST(DecodeJpeg, EveryFlippedHeaderByteIsAnErrorOrAnImage) {
  const Bytes file = encode_rgb(8, 8);
  for (std::size_t i = 3; i < file.size(); ++i) {
    Bytes damaged = file;
    damaged[i] ^= 0xFF;
    try {
      (void)decode(damaged, {.limits = {.max_image_pixels = 1 << 22}});
    } catch (const Error&) {
      continue;
    }
  }
}

}  // namespace
}  // namespace fovea::media
