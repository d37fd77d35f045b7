#pragma once

#include <algorithm>
#include <cstdint>

#include "core/rounding.h"
#include "fovea/options.h"
#include "fovea/tower/ops/linear.h"

namespace fovea {

/// A block of a tower.
struct BlockPlace {
  std::int64_t index = 0;
  std::int64_t count = 1;  ///< of the blocks of the tower
  /// With fp8, of nine blocks so many stay native, the first ones. The numbers of families are
  /// chosen so that rows with random weights differ by at most 0.08 (docs/quantization.md).
  std::int64_t native_of_nine = 1;
};
/// The value for towers with gated MLPs, where two results are multiplied, each with its error.
inline constexpr std::int64_t kGatedNativeOfNine = 3;

/// Formats of the layers of a tower. Those outside of blocks stay native: what a merger loses is in
/// the rows as it is.
struct QuantizationPlan {
  ops::WeightFormat blocks = ops::WeightFormat::kNative;

  /// The format of the layers of a block.
  [[nodiscard]] ops::WeightFormat of(const BlockPlace& block) const noexcept {
    const bool is_native =
        blocks == ops::WeightFormat::kFp8 && block.index < native_with_fp8(block);
    return is_native ? ops::WeightFormat::kNative : blocks;
  }

 private:
  /// How many blocks stay native: the first ones, as their rows differ most in size, and what they
  /// lose every later block works on.
  [[nodiscard]] static std::int64_t native_with_fp8(const BlockPlace& block) noexcept {
    constexpr std::int64_t kAtLeast = 3;
    return std::max(kAtLeast, ceil_div(block.native_of_nine * block.count, 9));
  }
};

[[nodiscard]] inline QuantizationPlan quantization_plan(Quantization quantization) noexcept {
  switch (quantization) {
    case Quantization::kNone: break;
    case Quantization::kFp8: return {ops::WeightFormat::kFp8};
    case Quantization::kInt8: return {ops::WeightFormat::kInt8};
  }
  return {};
}

}  // namespace fovea
