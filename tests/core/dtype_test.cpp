#include "fovea/tower/core/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <string>
#include <vector>

namespace fovea {
namespace {

constexpr std::uint32_t kNumHalves = 1u << 16;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Value of a binary16 by its definition: (-1)^s 2^(e - 15) (1 + m / 1024).
double f16_value(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1f;
  const int mantissa = bits & 0x3ff;
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == 0x1f)
    return mantissa == 0 ? sign * HUGE_VAL : std::numeric_limits<double>::quiet_NaN();
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

double bf16_value(std::uint16_t bits) {
  const int exponent = (bits >> 7) & 0xff;
  const int mantissa = bits & 0x7f;
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == 0xff)
    return mantissa == 0 ? sign * HUGE_VAL : std::numeric_limits<double>::quiet_NaN();
  if (exponent == 0) return sign * std::ldexp(mantissa, -133);
  return sign * std::ldexp(128 + mantissa, exponent - 134);
}

bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

/// A 16-bit float format under test.
struct Format {
  DType dtype;
  double (*value)(std::uint16_t);
  float (*widen)(std::uint16_t);
  std::uint16_t (*narrow)(float);
  std::uint16_t infinity;
};

class SixteenBitFloat : public ::testing::TestWithParam<Format> {};

TEST_P(SixteenBitFloat, EveryPatternWidensToItsExactValue) {
  for (std::uint32_t i = 0; i < kNumHalves; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const double expected = GetParam().value(bits);
    const float actual = GetParam().widen(bits);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(actual)) << "pattern " << bits;
    } else {
      ASSERT_TRUE(same_bits(actual, static_cast<float>(expected))) << "pattern " << bits;
    }
  }
}

TEST_P(SixteenBitFloat, EveryPatternSurvivesTheRoundTrip) {
  for (std::uint32_t i = 0; i < kNumHalves; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    const float wide = GetParam().widen(bits);
    const std::uint16_t back = GetParam().narrow(wide);
    if (std::isnan(wide)) {
      ASSERT_TRUE(std::isnan(GetParam().widen(back))) << "pattern " << bits;
      ASSERT_EQ(back & 0x8000u, bits & 0x8000u) << "pattern " << bits;
    } else {
      ASSERT_EQ(back, bits);
    }
  }
}

/// Between two neighbours the nearer one wins, in the middle the one with an even last bit. The
/// largest finite value's upper neighbour is where infinity would be if the exponent went on.
TEST_P(SixteenBitFloat, RoundsToNearestEvenBetweenAllNeighbours) {
  const Format& format = GetParam();
  for (std::uint32_t i = 0; i < format.infinity; ++i) {
    const auto low = static_cast<std::uint16_t>(i);
    const auto high = static_cast<std::uint16_t>(i + 1);
    const double below = format.value(low);
    const double above = high == format.infinity
                             ? below + (below - format.value(static_cast<std::uint16_t>(i - 1)))
                             : format.value(high);
    const auto middle = static_cast<float>(below + (above - below) / 2);
    const std::uint16_t even = i % 2 == 0 ? low : high;
    ASSERT_EQ(format.narrow(middle), even) << "above pattern " << i;
    ASSERT_EQ(format.narrow(-middle), even | 0x8000u) << "above pattern " << i;
    ASSERT_EQ(format.narrow(std::nextafter(middle, 0.0f)), low) << "above pattern " << i;
    ASSERT_EQ(format.narrow(std::nextafter(middle, kInfinity)), high) << "above pattern " << i;
  }
}

TEST_P(SixteenBitFloat, OverflowsToInfinity) {
  EXPECT_EQ(GetParam().narrow(std::numeric_limits<float>::max()), GetParam().infinity);
  EXPECT_EQ(GetParam().narrow(kInfinity), GetParam().infinity);
  EXPECT_EQ(GetParam().narrow(-kInfinity), GetParam().infinity | 0x8000u);
}

TEST_P(SixteenBitFloat, KeepsTheSignOfZeroAndOfWhatUnderflows) {
  const float tiny = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(GetParam().narrow(0.0f), 0u);
  EXPECT_EQ(GetParam().narrow(-0.0f), 0x8000u);
  EXPECT_EQ(GetParam().narrow(tiny), 0u);
  EXPECT_EQ(GetParam().narrow(-tiny), 0x8000u);
}

TEST_P(SixteenBitFloat, KeepsNaNWhosePayloadHasOnlyLowBits) {
  const auto nan = std::bit_cast<float>(0x7f800001u);
  EXPECT_TRUE(std::isnan(GetParam().widen(GetParam().narrow(nan))));
}

TEST_P(SixteenBitFloat, ConvertsUnalignedArrays) {
  const Format& format = GetParam();
  constexpr std::size_t kCount = 37;
  std::vector<std::byte> bytes(2 * kCount + 1);
  std::vector<float> values(kCount);
  for (std::size_t i = 0; i < kCount; ++i) values[i] = 0.37f * static_cast<float>(i) - 3.0f;
  narrow_from_f32(values.data(), format.dtype, bytes.data() + 1, kCount);
  std::vector<float> back(kCount);
  widen_to_f32(format.dtype, bytes.data() + 1, back.data(), kCount);
  for (std::size_t i = 0; i < kCount; ++i)
    EXPECT_TRUE(same_bits(back[i], format.widen(format.narrow(values[i])))) << "element " << i;
}

INSTANTIATE_TEST_SUITE_P(
    Formats, SixteenBitFloat,
    ::testing::Values(Format{DType::kF16, f16_value, f16_to_f32, f32_to_f16, 0x7c00},
                      Format{DType::kBF16, bf16_value, bf16_to_f32, f32_to_bf16, 0x7f80}),
    [](const auto& test) { return std::string(to_string(test.param.dtype)); });

TEST(DTypeConversion, CopiesF32BitForBit) {
  const std::vector<float> values{1.5f, -0.0f, kInfinity, std::bit_cast<float>(0x7fc00001u)};
  std::vector<std::byte> bytes(values.size() * sizeof(float) + 1);
  narrow_from_f32(values.data(), DType::kF32, bytes.data() + 1, values.size());
  std::vector<float> back(values.size());
  widen_to_f32(DType::kF32, bytes.data() + 1, back.data(), back.size());
  EXPECT_EQ(std::memcmp(back.data(), values.data(), values.size() * sizeof(float)), 0);
}

TEST(DTypeConversion, OfNothingTouchesNothing) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    float value = 2.5f;
    std::byte byte{7};
    widen_to_f32(dtype, &byte, &value, 0);
    narrow_from_f32(&value, dtype, &byte, 0);
    EXPECT_EQ(value, 2.5f);
    EXPECT_EQ(byte, std::byte{7});
    widen_to_f32(dtype, nullptr, nullptr, 0);  // what an empty vector has to offer
    narrow_from_f32(nullptr, dtype, nullptr, 0);
  }
}

TEST(E4M3, EveryNumberComesBack) {
  for (int bits = 0; bits < 256; ++bits) {
    const auto byte = static_cast<std::uint8_t>(bits);
    const float value = e4m3_to_f32(byte);
    EXPECT_EQ(std::isnan(value), (bits & 0x7f) == 0x7f);
    EXPECT_EQ(f32_to_e4m3(value), byte);
  }
  EXPECT_EQ(e4m3_to_f32(0x7e), kMaxE4M3);
  EXPECT_EQ(e4m3_to_f32(0x08), 0x1p-6f);  // the smallest normal number
  EXPECT_EQ(e4m3_to_f32(0x01), 0x1p-9f);  // and the smallest
  EXPECT_EQ(e4m3_to_f32(0xc4), -3.0f);
}

TEST(E4M3, RoundsToTheNearestNumberAndTiesToTheEvenOne) {
  for (int bits = 0; bits < 0x7e; ++bits) {
    const float low = e4m3_to_f32(static_cast<std::uint8_t>(bits));
    const float high = e4m3_to_f32(static_cast<std::uint8_t>(bits + 1));
    const float middle = (low + high) / 2;  // exact
    for (const float sign : {1.0f, -1.0f}) {
      const int flag = sign < 0 ? 0x80 : 0;
      EXPECT_EQ(f32_to_e4m3(sign * std::nextafter(middle, 0.0f)), bits | flag);
      EXPECT_EQ(f32_to_e4m3(sign * std::nextafter(middle, 1000.0f)), (bits + 1) | flag);
      EXPECT_EQ(f32_to_e4m3(sign * middle), ((bits + 1) & ~1) | flag);
    }
  }
}

TEST(E4M3, BeyondTheLargestNumberGivesIt) {
  for (const float value : {449.0f, 464.0f, 1e30f, kInfinity}) {
    EXPECT_EQ(f32_to_e4m3(value), 0x7e);
    EXPECT_EQ(f32_to_e4m3(-value), 0xfe);
  }
  EXPECT_EQ(f32_to_e4m3(-0.0f), 0x80);
  EXPECT_EQ(f32_to_e4m3(1e-30f), 0);
}

TEST(DType, HasASizeAndANameOfItsOwn) {
  const std::vector<std::pair<DType, std::size_t>> sizes{
      {DType::kF32, 4}, {DType::kF16, 2}, {DType::kBF16, 2}, {DType::kF8E4M3, 1},
      {DType::kI8, 1},  {DType::kU8, 1},  {DType::kI32, 4},  {DType::kI64, 8}};
  std::set<std::string> names;
  for (const auto& [dtype, size] : sizes) {
    EXPECT_EQ(size_of(dtype), size) << to_string(dtype);
    names.insert(to_string(dtype));
  }
  EXPECT_EQ(names, (std::set<std::string>{"float32", "float16", "bfloat16", "float8_e4m3fn", "int8",
                                          "uint8", "int32", "int64"}));
}

}  // namespace
}  // namespace fovea
