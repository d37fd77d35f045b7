#include "serve/rows/element_type.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "rows_fixture.h"

namespace fovea::serve {
namespace {

using test::refusal;
using testing::ElementsAre;

/// The bits of one number.
std::uint32_t bits_of(float number, ElementType type) {
  std::vector<std::byte> bytes;
  append_elements(std::vector{number}, type, bytes);
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bits |= std::to_integer<std::uint32_t>(bytes[i]) << (8 * i);
  }
  return bits;
}

TEST(ElementType, HasTheNamesOfRequests) {
  for (const auto* name : {"float32", "float16", "bfloat16", "fp8_e4m3", "fp8_e5m2"}) {
    EXPECT_EQ(to_string(element_type(name, "embed_dtype")), name);
  }
  EXPECT_EQ(element_type("bf16", "dtype"), ElementType::kBFloat16);
  EXPECT_EQ(element_type("fp16", "dtype"), ElementType::kFloat16);
  EXPECT_EQ(element_type("f32", "dtype"), ElementType::kFloat32);
  const ApiError error = refusal([] { (void)element_type("int8", "embed_dtype"); });
  EXPECT_EQ(error.code(), "unsupported_dtype");
  EXPECT_EQ(error.param(), "embed_dtype");
  EXPECT_STREQ(error.what(),
               "embed_dtype: expected one of float32, float16, bfloat16, fp8_e4m3, fp8_e5m2, got "
               "\"int8\"");
}

struct Small {
  ElementType type;
  int exponent_bits;
  int fraction_bits;
  std::uint32_t largest;   ///< bits of the largest finite number
  std::uint32_t overflow;  ///< what comes beyond it
};

void PrintTo(const Small& small, std::ostream* out) { *out << to_string(small.type); }

class Conversion : public testing::TestWithParam<Small> {
 protected:
  /// The number that bits stand for, by the definition of the format; the code behind the largest
  /// finite one stands for the number that would come next.
  [[nodiscard]] static double value(std::uint32_t bits) {
    const int fraction_bits = GetParam().fraction_bits;
    const int bias = (1 << (GetParam().exponent_bits - 1)) - 1;
    const auto field = static_cast<int>(bits >> fraction_bits);
    const double fraction =
        std::ldexp(static_cast<double>(bits & ((1U << fraction_bits) - 1)), -fraction_bits);
    return field == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, field - bias);
  }

  static void expect_bits(double number, std::uint32_t bits) {
    const std::uint32_t sign = 1U << (GetParam().exponent_bits + GetParam().fraction_bits);
    EXPECT_EQ(bits_of(static_cast<float>(number), GetParam().type), bits) << number;
    EXPECT_EQ(bits_of(static_cast<float>(-number), GetParam().type), bits | sign) << number;
  }
};

TEST_P(Conversion, KeepsTheNumbersOfTheType) {
  for (std::uint32_t bits = 0; bits <= GetParam().largest; ++bits) expect_bits(value(bits), bits);
}

TEST_P(Conversion, RoundsToTheNearestThenToTheEven) {
  for (std::uint32_t bits = 0; bits <= GetParam().largest; ++bits) {
    const std::uint32_t next = bits < GetParam().largest ? bits + 1 : GetParam().overflow;
    const auto middle = static_cast<float>((value(bits) + value(bits + 1)) / 2);
    expect_bits(middle, bits % 2 == 0 ? bits : next);
    expect_bits(std::nextafter(middle, 0.0F), bits);
    expect_bits(std::nextafter(middle, std::numeric_limits<float>::infinity()), next);
  }
}

TEST_P(Conversion, OverflowsAsTorchDoes) {
  expect_bits(value(GetParam().largest + 1), GetParam().overflow);
  expect_bits(std::numeric_limits<float>::max(), GetParam().overflow);
}

TEST_P(Conversion, RoundsTheSmallestNumbersToZero) {
  expect_bits(std::numeric_limits<float>::denorm_min(), 0);
  expect_bits(value(1) / 4, 0);
}

INSTANTIATE_TEST_SUITE_P(Types, Conversion,
                         testing::Values(Small{ElementType::kFloat16, 5, 10, 0x7bff, 0x7c00},
                                         Small{ElementType::kBFloat16, 8, 7, 0x7f7f, 0x7f80},
                                         Small{ElementType::kFp8E4M3, 4, 3, 0x7e, 0x7f},
                                         Small{ElementType::kFp8E5M2, 5, 2, 0x7b, 0x7c}));

TEST(AppendElements, WritesFloatsAsTheyAre) {
  EXPECT_EQ(bits_of(-2.5F, ElementType::kFloat32), 0xc0200000U);
}

TEST(AppendElements, AppendsInOrder) {
  std::vector<std::byte> bytes{std::byte{7}};
  append_elements(std::vector{1.0F, -2.5F}, ElementType::kBFloat16, bytes);
  EXPECT_THAT(bytes, ElementsAre(std::byte{7}, std::byte{0x80}, std::byte{0x3f}, std::byte{0x20},
                                 std::byte{0xc0}));
}

TEST(SwapBytes, TurnsEachElement) {
  std::vector<std::byte> bytes{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  swap_bytes(bytes, 2);
  EXPECT_THAT(bytes, ElementsAre(std::byte{2}, std::byte{1}, std::byte{4}, std::byte{3}));
  swap_bytes(bytes, 4);
  EXPECT_THAT(bytes, ElementsAre(std::byte{3}, std::byte{4}, std::byte{1}, std::byte{2}));
  swap_bytes(bytes, 1);
  EXPECT_EQ(bytes[0], std::byte{3});
}

}  // namespace
}  // namespace fovea::serve
