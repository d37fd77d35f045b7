#pragma once

// A row on its way to E4M3.

#include <cuda_fp8.h>

#include <cstdint>

#include "fovea/tower/core/dtype.h"
#include "ops/cuda/common/bf16.cuh"
#include "ops/cuda/common/lanes.cuh"
#include "ops/quantized.h"

namespace fovea::cuda {

/// Rounding to E4M3 changes a number by up to 2^-4 of it, and by 2^-10 of its scale near zero.
inline constexpr float kNormMargin = 1.07f;

/// Two numbers of E4M3, the first in the lower byte: rounded to nearest even, kMaxE4M3 beyond it,
/// NaN stays NaN. One instruction from compute capability 8.9 on.
__device__ inline std::uint16_t pack_e4m3(float low, float high) {
  return __nv_cvt_float2_to_fp8x2(make_float2(low, high), __NV_SATFINITE, __NV_E4M3);
}

/// Eight bf16 numbers in E4M3.
__device__ inline uint2 eight_e4m3(const uint4& numbers) {
  const auto four = [](Bf16Pair low, Bf16Pair high) {
    const float2 a = unpack_bf16(low);
    const float2 b = unpack_bf16(high);
    return pack_e4m3(a.x, a.y) | static_cast<std::uint32_t>(pack_e4m3(b.x, b.y)) << 16;
  };
  return {four(numbers.x, numbers.y), four(numbers.z, numbers.w)};
}

/// value(0) to value(15) in E4M3, the first in the lowest byte.
template <class Value>
__device__ uint4 sixteen_e4m3(const Value& value) {
  std::uint32_t words[4];
#pragma unroll
  for (int i = 0; i < 16; i += 2) {
    const std::uint32_t pair = pack_e4m3(value(i), value(i + 1));
    words[i / 4] = i % 4 == 0 ? pair : words[i / 4] | pair << 16;
  }
  return {words[0], words[1], words[2], words[3]};
}

/// What the scale and the norm of a row are taken from.
struct RowExtent {
  float largest = 0.0f;  ///< magnitude
  float square = 0.0f;   ///< sum of squares

  template <int kCount>
  __device__ void add(const float (&values)[kCount]) {
#pragma unroll
    for (const float value : values) {
      largest = fmaxf(largest, fabsf(value));
      square = fmaf(value, value, square);
    }
  }
  /// Over the lanes of a warp, given to each.
  __device__ void reduce() {
#pragma unroll
    for (int offset = kWarp / 2; offset > 0; offset /= 2)
      add_other({__shfl_xor_sync(kAllLanes, largest, offset),
                 __shfl_xor_sync(kAllLanes, square, offset)});
  }
  __device__ void add_other(const RowExtent& other) {
    largest = fmaxf(largest, other.largest);
    square += other.square;
  }
  [[nodiscard]] __device__ float scale() const {
    return largest > 0.0f ? largest / kMaxE4M3 : 1.0f;
  }
  /// By one thread of the row.
  __device__ void store(const ops::QuantizedRows& out, std::int64_t row) const {
    out.scale[row] = scale();
    out.norm[row] = kNormMargin * sqrtf(square);
  }
};

/// The extent of what the threads of a CTA have, given to each.
/// @param of_warps shared memory, one for every warp. A call waits until all have read it.
__device__ inline RowExtent extent_of_cta(RowExtent extent, RowExtent* of_warps) {
  extent.reduce();
  __syncthreads();
  if (threadIdx.x % kWarp == 0) of_warps[threadIdx.x / kWarp] = extent;
  __syncthreads();
  RowExtent all = of_warps[0];
  for (unsigned warp = 1; warp < blockDim.x / kWarp; ++warp) all.add_other(of_warps[warp]);
  return all;
}

/// Eight neighbouring numbers at a multiple of 8 bytes, each multiplied by `inverse`.
__device__ inline void store_e4m3(std::byte* to, const float (&values)[8], float inverse) {
  ushort4 packed;
  packed.x = pack_e4m3(values[0] * inverse, values[1] * inverse);
  packed.y = pack_e4m3(values[2] * inverse, values[3] * inverse);
  packed.z = pack_e4m3(values[4] * inverse, values[5] * inverse);
  packed.w = pack_e4m3(values[6] * inverse, values[7] * inverse);
  *reinterpret_cast<ushort4*>(to) = packed;
}

}  // namespace fovea::cuda
