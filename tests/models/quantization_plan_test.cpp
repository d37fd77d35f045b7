#include "models/quantization_plan.h"

#include <gtest/gtest.h>

namespace fovea {
namespace {

TEST(QuantizationPlanOfFp8, LeavesTheFirstOfNineBlocksNativeOrAsManyAsTheFamilySays) {
  const QuantizationPlan plan = quantization_plan(Quantization::kFp8);
  const auto native = [&](std::int64_t count, std::int64_t of_nine) {
    std::int64_t index = 0;
    while (index < count && plan.of({index, count, of_nine}) == ops::WeightFormat::kNative) ++index;
    return index;
  };
  EXPECT_EQ(native(27, 1), 3);
  EXPECT_EQ(native(28, 1), 4);
  EXPECT_EQ(native(45, 1), 5);
  EXPECT_EQ(native(32, kGatedNativeOfNine), 11);
  EXPECT_EQ(native(24, 5), 14);
  EXPECT_EQ(native(5, 5), 3);
  EXPECT_EQ(native(5, 1), 3) << "at least three";
  EXPECT_EQ(native(2, 1), 2);
}

TEST(QuantizationPlanOfInt8, LeavesNoBlockNative) {
  const QuantizationPlan plan = quantization_plan(Quantization::kInt8);
  EXPECT_EQ(plan.of({.index = 0, .count = 27, .native_of_nine = 5}), ops::WeightFormat::kInt8);
}

}  // namespace
}  // namespace fovea
