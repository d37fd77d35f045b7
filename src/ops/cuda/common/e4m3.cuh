#pragma once

#include <cuda_fp8.h>

#include <cstdint>

namespace fovea::cuda {

/// Two numbers of E4M3, the first in the lower byte: rounded to nearest even, kMaxE4M3 beyond it,
/// NaN stays NaN. One instruction from compute capability 8.9 on.
__device__ inline std::uint16_t pack_e4m3(float low, float high) {
  return __nv_cvt_float2_to_fp8x2(make_float2(low, high), __NV_SATFINITE, __NV_E4M3);
}

}  // namespace fovea::cuda
