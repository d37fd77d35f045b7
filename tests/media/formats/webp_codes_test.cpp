// What the codes of a lossless WebP image take, read without decoding it.
#include "media/formats/webp_codes.h"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "media/test_images.h"

namespace fovea::media {
namespace {

using test::Bytes;

constexpr std::size_t kGroup = 1024 + 2976 * 4;  // without a colour cache

/// Bytes of a text of bits, first bit lowest.
Bytes bytes_of_bits(const std::string& bits) {
  Bytes bytes((bits.size() + 7) / 8);
  for (std::size_t i = 0; i < bits.size(); ++i) {
    if (bits[i] == '1') bytes[i / 8] = static_cast<std::uint8_t>(bytes[i / 8] | 1u << i % 8);
  }
  return bytes;
}

const std::string kZero = "1000";               // the code of symbol 0 alone: no bits
const std::string kZeroOrOne = "110010000000";  // symbols 0 and 1, a bit each

/// A stream without transforms whose blocks of 4 x 4 pixels have these groups, 0 or 1.
Bytes stream_of(const std::string& groups) {
  return bytes_of_bits(
      "0"
      "0"
      "1"
      "000"
      "0" +
      kZeroOrOne + kZero + kZero + kZero + kZero + groups);
}

TEST(WebpCodes, AGroupForAllPixels) {
  EXPECT_EQ(webp_code_bytes(bytes_of_bits("000"), 8, 8), kGroup);
}

TEST(WebpCodes, GroupsByBlocks) {
  EXPECT_EQ(webp_code_bytes(stream_of("0000"), 8, 8), kGroup);
  EXPECT_EQ(webp_code_bytes(stream_of("0010"), 8, 8), 2 * kGroup);
  EXPECT_EQ(webp_code_bytes(stream_of("0111"), 5, 7), 2 * kGroup) << "blocks at the edge";
}

TEST(WebpCodes, AColorCacheMakesTablesLonger) {
  EXPECT_EQ(webp_code_bytes(bytes_of_bits("0"
                                          "1"
                                          "1101"
                                          "0"),
                            8, 8),
            kGroup + 2 * 2048 * 4);
}

TEST(WebpCodes, ATransformIsThereOnce) {
  const std::string green = "101";  // without data
  EXPECT_EQ(webp_code_bytes(bytes_of_bits(green + "000"), 8, 8), kGroup);
  EXPECT_EQ(webp_code_bytes(bytes_of_bits(green + green + "000"), 8, 8), 0) << "as in libwebp";
}

TEST(WebpCodes, AreUnknownWhereTheStreamIsDamaged) {
  const Bytes cut = stream_of("0010");
  EXPECT_EQ(webp_code_bytes({}, 8, 8), 0);
  EXPECT_EQ(webp_code_bytes(bytes_of_bits("0"
                                          "1"
                                          "0000"
                                          "0"),
                            8, 8),
            0)
      << "a cache of 0 bits";
  EXPECT_EQ(webp_code_bytes(std::span(cut).first(3), 8, 8), 0) << "cut off";
}

TEST(WebpCodes, OfWhatTheEncoderMakesAreFew) {
  constexpr int kSide = 600;
  Bytes rgba(std::size_t{kSide} * kSide * 4);
  for (std::size_t i = 0; i < rgba.size(); ++i) {
    const std::size_t x = i / 4 % kSide;
    const std::size_t y = i / 4 / kSide;
    rgba[i] = static_cast<std::uint8_t>(x < kSide / 2 ? x * y % 251 * (i % 4) : x / 9 + y);
  }
  const Bytes file = test::encode_lossless_webp(kSide, kSide, rgba);
  constexpr std::size_t kHeaders = 12 + 8 + 5;  // of file, chunk and image
  const std::size_t bytes = webp_code_bytes(std::span(file).subspan(kHeaders), kSide, kSide);
  EXPECT_GE(bytes, kGroup);
  EXPECT_LE(bytes, 600 * kGroup);
}

}  // namespace
}  // namespace fovea::media
