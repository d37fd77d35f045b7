#include "media/denormalize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace fovea::media {
namespace {

constexpr double kRescale = 1.0 / 255;

struct Statistics {
  std::array<float, 3> mean;
  std::array<float, 3> std;
};

constexpr Statistics kClip = {{0.48145466f, 0.4578275f, 0.40821073f},
                              {0.26862954f, 0.26130258f, 0.27577711f}};
constexpr Statistics kHalf = {{0.5f, 0.5f, 0.5f}, {0.5f, 0.5f, 0.5f}};

float rounded(DType dtype, float value) {
  std::array<std::byte, sizeof(float)> stored{};
  narrow_from_f32(&value, dtype, stored.data(), 1);
  widen_to_f32(dtype, stored.data(), &value, 1);
  return value;
}

/// Byte of one value, or -1.
int byte_of(const Denormalizer& bytes, std::size_t channel, float value) {
  std::uint8_t byte = 0;
  return bytes.bytes_of(channel, {&value, 1}, &byte) == 1 ? byte : -1;
}

TEST(Denormalize, FindsEveryByteOfEveryChannel) {
  for (const Statistics& s : {kClip, kHalf}) {
    const NormalizeTable table = fused_normalize_table(s.mean, s.std, kRescale);
    const Denormalizer bytes(table, DType::kF32);
    for (std::size_t c = 0; c < 3; ++c) {
      for (int v = 0; v < 256; ++v) {
        EXPECT_EQ(byte_of(bytes, c, table[c][static_cast<std::size_t>(v)]), v);
      }
    }
  }
}

TEST(Denormalize, TheOrderOfRoundingsDoesNotMatter) {
  for (const Statistics& s : {kClip, kHalf}) {
    const Denormalizer bytes(fused_normalize_table(s.mean, s.std, kRescale), DType::kF32);
    const NormalizeTable other = to_tensor_normalize_table(s.mean, s.std);
    for (std::size_t c = 0; c < 3; ++c) {
      for (int v = 0; v < 256; ++v) {
        EXPECT_EQ(byte_of(bytes, c, other[c][static_cast<std::size_t>(v)]), v);
      }
    }
  }
}

TEST(Denormalize, SixteenBitsAreEnough) {
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    const NormalizeTable table = fused_normalize_table(kHalf.mean, kHalf.std, kRescale);
    const Denormalizer bytes(table, dtype);
    for (int v = 0; v < 256; ++v) {
      EXPECT_EQ(byte_of(bytes, 1, rounded(dtype, table[1][static_cast<std::size_t>(v)])), v);
    }
  }
}

TEST(Denormalize, BytesThatBFloat16CannotTellApartAreOneOfThem) {
  // Blue reaches 2.2 in steps of 0.0145; bfloat16 has steps of 0.0156 above 2.
  int mistaken = 0;
  const NormalizeTable table =
      fused_normalize_table({0.48f, 0.45f, 0.4f}, {0.2f, 0.26f, 0.27f}, kRescale);
  const Denormalizer bytes(table, DType::kBF16);
  for (std::size_t c = 0; c < 3; ++c) {
    for (int v = 0; v < 256; ++v) {
      const float value = rounded(DType::kBF16, table[c][static_cast<std::size_t>(v)]);
      const int byte = byte_of(bytes, c, value);
      ASSERT_GE(byte, 0) << v;
      mistaken += byte != v ? 1 : 0;
      EXPECT_EQ(rounded(DType::kBF16, table[c][static_cast<std::size_t>(byte)]), value);
    }
  }
  EXPECT_GT(mistaken, 0);
}

TEST(Denormalize, ValuesBetweenBytesAreNone) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    const NormalizeTable table = fused_normalize_table(kHalf.mean, kHalf.std, kRescale);
    const Denormalizer bytes(table, dtype);
    const float half_step = (table[0][255] - table[0][0]) / 510;
    for (const std::size_t v : {0U, 30U, 127U, 200U, 254U}) {
      EXPECT_EQ(byte_of(bytes, 0, rounded(dtype, table[0][v] + half_step)), -1)
          << v << " " << to_string(dtype);
    }
  }
  const NormalizeTable table = fused_normalize_table(kClip.mean, kClip.std, kRescale);
  const Denormalizer bytes(table, DType::kF32);
  const float step = (table[2][255] - table[2][0]) / 255;
  EXPECT_EQ(byte_of(bytes, 2, table[2][100] + step / 500), -1);
  EXPECT_EQ(byte_of(bytes, 2, table[2][100] - step / 500), -1);
}

TEST(Denormalize, NothingBelowBlackAboveWhiteOrWithoutAValue) {
  const NormalizeTable table = fused_normalize_table(kHalf.mean, kHalf.std, kRescale);
  const Denormalizer bytes(table, DType::kF32);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float value : {-1.0078f, 1.0078f, 128.0f, 1e30f, -1e30f, kInfinity, -kInfinity,
                            std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_EQ(byte_of(bytes, 0, value), -1) << value;
  }
  EXPECT_EQ(bytes.nearest_byte(0, -7.0f), 0);
  EXPECT_EQ(bytes.nearest_byte(0, 7.0f), 255);
  EXPECT_EQ(bytes.nearest_byte(0, table[0][80] + 0.001f), 80);
  EXPECT_EQ(bytes.nearest_byte(0, std::numeric_limits<float>::quiet_NaN()), 0);
}

TEST(Denormalize, StopsAtTheFirstStranger) {
  const NormalizeTable table = fused_normalize_table(kHalf.mean, kHalf.std, kRescale);
  const Denormalizer bytes(table, DType::kF32);
  const std::vector<float> values{table[0][7], table[0][255], 0.5f, table[0][9]};
  std::vector<std::uint8_t> out(4, 1);
  EXPECT_EQ(bytes.bytes_of(0, values, out.data()), 2U);
  EXPECT_EQ(out, (std::vector<std::uint8_t>{7, 255, 1, 1}));
}

TEST(Denormalize, AStandardDeviationOfZeroHasNoBytes) {
  const Denormalizer bytes(fused_normalize_table(kHalf.mean, {0.0f, 0.0f, 0.0f}, kRescale),
                           DType::kF32);
  EXPECT_EQ(byte_of(bytes, 0, 0.0f), -1);
}

}  // namespace
}  // namespace fovea::media
