#include "core/float_mode.h"

#include <gtest/gtest.h>

#include <cfenv>

namespace fovea {
namespace {

/// Halves a number at run time.
float half_of(float value) {
  volatile float operand = value;
  return operand * 0.5f;
}

constexpr float kSmallestNormal = 0x1p-126f;

TEST(FloatMode, OfTowersTakesDenormalsForZero) {
  EXPECT_GT(half_of(kSmallestNormal), 0.0f);
  const FloatModeScope scope(kTowerFloatMode);
  EXPECT_EQ(half_of(kSmallestNormal), 0.0f) << "as a result";
  EXPECT_EQ(half_of(0x1p-127f) * 0x1p100f, 0.0f) << "as an operand";
  EXPECT_EQ(half_of(2 * kSmallestNormal), kSmallestNormal);
}

TEST(FloatMode, ScopeBringsBackTheModeOfTheHost) {
  std::fesetround(FE_DOWNWARD);
  const FloatMode before = float_mode();
  {
    const FloatModeScope scope(kTowerFloatMode);
    EXPECT_EQ(float_mode(), kTowerFloatMode);
    EXPECT_EQ(half_of(0x1.000002p0f) + 0x1p30f, 0x1p30f) << "rounds to nearest";
  }
  EXPECT_EQ(float_mode(), before);
  std::fesetround(FE_TONEAREST);
}

}  // namespace
}  // namespace fovea
