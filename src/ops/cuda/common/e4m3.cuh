#pragma once

#include <cstdint>

namespace fovea::cuda {

/// Two numbers of E4M3, the first in the lower byte: rounded to nearest even, kMaxE4M3 beyond it,
/// NaN stays NaN.
__device__ inline std::uint16_t pack_e4m3(float low, float high) {
  std::uint16_t pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
  return pair;
}

}  // namespace fovea::cuda
