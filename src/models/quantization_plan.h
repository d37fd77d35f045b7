#pragma once

#include <cstdint>

#include "fovea/options.h"
#include "fovea/tower/ops/linear.h"

namespace fovea {

/// Formats of the layers of a tower. Those outside of blocks stay native: what a merger loses is in
/// the rows as it is.
struct QuantizationPlan {
  ops::WeightFormat blocks = ops::WeightFormat::kNative;
  std::int64_t native_blocks = 0;  ///< the first ones, whose layers stay native, too

  /// The format of the layers of block number `index`.
  [[nodiscard]] ops::WeightFormat of_block(std::int64_t index) const noexcept {
    return index < native_blocks ? ops::WeightFormat::kNative : blocks;
  }
};

[[nodiscard]] inline QuantizationPlan quantization_plan(Quantization quantization) noexcept {
  // The rows of the first blocks differ most in size, and what they lose every later block works
  // on.
  constexpr std::int64_t kNativeWithFp8 = 3;
  switch (quantization) {
    case Quantization::kNone: break;
    case Quantization::kFp8:
      return {.blocks = ops::WeightFormat::kFp8, .native_blocks = kNativeWithFp8};
    case Quantization::kInt8: return {.blocks = ops::WeightFormat::kInt8};
  }
  return {};
}

}  // namespace fovea
