#include <gtest/gtest.h>
#include <webp/decode.h>
#include <webp/encode.h>

#include <algorithm>
#include <utility>

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

Bytes with_opaque_alpha(Bytes rgba) {
  for (std::size_t i = 3; i < rgba.size(); i += 4) rgba[i] = 255;
  return rgba;
}

Bytes dropped(const Bytes& rgba) {
  Bytes rgb(rgba.size() / 4 * 3);
  drop_alpha(rgba.data(), rgba.size() / 4, rgb.data());
  return rgb;
}

Bytes on_white(const Bytes& rgba) {
  constexpr std::uint8_t kBehind[3] = {255, 255, 255};
  Bytes rgb(rgba.size() / 4 * 3);
  composite_rgba(rgba.data(), rgba.size() / 4, kBehind, rgb.data());
  return rgb;
}

TEST(DecodeWebp, LosslessIsExact) {
  for (const auto& [width, height] : {std::pair{33, 21}, {1, 1}, {1, 5000}, {5000, 1}}) {
    const Bytes rgba = with_opaque_alpha(test::checksum_pattern(width, height, 4));
    const Image image = decode(test::encode_lossless_webp(width, height, rgba));
    EXPECT_EQ(image.width_px, width);
    EXPECT_EQ(image.height_px, height);
    EXPECT_EQ(image.rgb, dropped(rgba));
  }
}

TEST(DecodeWebp, AlphaIsCompositedOrDropped) {
  const Bytes rgba = test::checksum_pattern(33, 21, 4);
  const Bytes file = test::encode_lossless_webp(33, 21, rgba);
  EXPECT_EQ(decode(file).rgb, on_white(rgba));
  EXPECT_EQ(decode(file, {.profile = MediaProfile::kTransformers}).rgb, dropped(rgba));
}

TEST(DecodeWebp, FirstFrameStandsOnATransparentCanvas) {
  const Bytes frame = test::checksum_pattern(5, 3, 4);
  const Bytes file =
      test::webp_animation(10, 8, 4, 2, 5, 3, test::encode_lossless_webp(5, 3, frame), true);
  Bytes canvas(10 * 8 * 4);
  for (std::size_t y = 0; y < 3; ++y)
    std::copy_n(frame.begin() + static_cast<std::ptrdiff_t>(y * 5 * 4), 5 * 4,
                canvas.begin() + static_cast<std::ptrdiff_t>(((y + 2) * 10 + 4) * 4));
  const Image image = decode(file);
  EXPECT_EQ(image.width_px, 10);
  EXPECT_EQ(image.height_px, 8);
  EXPECT_EQ(image.rgb, on_white(canvas));
  EXPECT_EQ(decode(file, {.profile = MediaProfile::kTransformers}).rgb, dropped(canvas));
}

TEST(DecodeWebp, AnOpaqueAnimationHasABlackCanvas) {
  const Bytes frame = with_opaque_alpha(test::checksum_pattern(4, 4, 4));
  const Bytes file =
      test::webp_animation(6, 4, 2, 0, 4, 4, test::encode_lossless_webp(4, 4, frame), false);
  const Image image = decode(file);
  EXPECT_EQ(Bytes(image.rgb.begin(), image.rgb.begin() + 6), Bytes(6));
  EXPECT_EQ(Bytes(image.rgb.begin() + 6, image.rgb.begin() + 9), (Bytes{0, 29, 58}));
}

TEST(DecodeWebp, AnImageBehindTheFirstTakesNoMemory) {
  // 4 x 4 pixels, no transform, a cache of 11 bits: tables that no encoder makes
  constexpr std::string_view kImage("VP8L\6\0\0\0\x2F\3\xC0\0\0\x2E", 14);
  Bytes file = test::encode_lossless_webp(4, 4, test::checksum_pattern(4, 4, 4));
  const std::size_t alone = probe_image(file, "image", {}).decode_bytes;
  file.insert(file.end(), kImage.begin(), kImage.end());
  EXPECT_EQ(probe_image(file, "image", {}).decode_bytes, alone);
}

TEST(DecodeWebp, EveryTruncationIsCorrupt) {
  const Bytes file = test::encode_lossless_webp(33, 21, test::checksum_pattern(33, 21, 4));
  for (std::size_t size = 12; size < file.size(); ++size)
    expect_error(ErrorCode::kCorruptData, "image: cannot ", [&] {
      (void)decode(Bytes(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size)));
    });
}

TEST(DecodeWebp, TruncatedPixelsSaySo) {
  const Bytes file = test::encode_lossless_webp(33, 21, test::checksum_pattern(33, 21, 4));
  expect_error(ErrorCode::kCorruptData, "cannot decode WebP: the file is truncated",
               [&] { (void)decode(Bytes(file.begin(), file.end() - 40)); });
}

TEST(DecodeWebp, ATruncatedAnimationIsCorrupt) {
  const Bytes frame = test::encode_lossless_webp(4, 4, test::checksum_pattern(4, 4, 4));
  const Bytes file = test::webp_animation(6, 4, 2, 0, 4, 4, frame, true);
  expect_error(ErrorCode::kCorruptData, "cannot find the first frame of the WebP animation",
               [&] { (void)decode(Bytes(file.begin(), file.end() - 1)); });
}

/// Larger than the slices that the decoder is given.
Bytes large_lossy_webp(int width, int height) {
  const Bytes rgb = test::make_samples<std::uint8_t>(width, height, 3, [](int x, int y, int c) {
    return x * y * (c + 7) * 2654435LL / 512 % 256;
  });
  std::uint8_t* data = nullptr;
  const std::size_t size = WebPEncodeRGB(rgb.data(), width, height, width * 3, 95, &data);
  Bytes file(data, data + size);
  WebPFree(data);
  return file;
}

TEST(DecodeWebp, SlicesMakeTheImageOfTheWhole) {
  constexpr int kWidth = 640;
  constexpr int kHeight = 480;
  const Bytes file = large_lossy_webp(kWidth, kHeight);
  ASSERT_GT(file.size(), std::size_t{256} << 10);
  Bytes expected(static_cast<std::size_t>(kWidth * kHeight * 3));
  ASSERT_NE(
      WebPDecodeRGBInto(file.data(), file.size(), expected.data(), expected.size(), kWidth * 3),
      nullptr);
  EXPECT_EQ(decode(file).rgb, expected);
  expect_error(ErrorCode::kCorruptData, "cannot decode WebP: the file is truncated",
               [&] { (void)decode(Bytes(file.begin(), file.end() - 1)); });
}

TEST(DecodeWebp, StopsWhenAskedTo) {
  test::expect_stops([] { (void)decode(large_lossy_webp(64, 64)); });
  test::expect_stops(
      [] { (void)decode(test::encode_lossless_webp(9, 7, test::checksum_pattern(9, 7, 4))); });
}

TEST(DecodeWebp, ABrokenHeaderIsCorrupt) {
  Bytes file = test::encode_lossless_webp(4, 4, test::checksum_pattern(4, 4, 4));
  file[20] ^= 0xFF;  // signature of the lossless bitstream
  expect_error(ErrorCode::kCorruptData, "cannot read the WebP header", [&] { (void)decode(file); });
}

TEST(DecodeWebp, DamagedPixelsAreAnErrorOrAnImage) {
  const Bytes file = test::encode_lossless_webp(9, 7, test::checksum_pattern(9, 7, 4));
  for (std::size_t i = 12; i < file.size(); ++i) {
    Bytes damaged = file;
    damaged[i] ^= 0xFF;
    try {
      (void)decode(damaged, {.limits = {.max_image_pixels = 1 << 20}});
    } catch (const Error&) {
      continue;
    }
  }
}

}  // namespace
}  // namespace fovea::media
