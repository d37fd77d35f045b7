#pragma once

// Sums and maxima over the lanes of a warp.
namespace fovea::cuda {

inline constexpr unsigned kAllLanes = 0xffffffffu;

/// Maximum over the four lanes that share a row of a matrix unit's sums.
__device__ inline float quad_max(float value) {
  value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, 1));
  return fmaxf(value, __shfl_xor_sync(kAllLanes, value, 2));
}
/// Sum over those.
__device__ inline float quad_sum(float value) {
  value += __shfl_xor_sync(kAllLanes, value, 1);
  return value + __shfl_xor_sync(kAllLanes, value, 2);
}

/// Sum over the lanes up to this one, of `count` lanes that matter.
__device__ inline int sum_up_to_lane(int value, int count = 32) {
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2) {
    if (offset >= count) break;
    const int lower = __shfl_up_sync(kAllLanes, value, offset);
    if (static_cast<int>(threadIdx.x) % 32 >= offset) value += lower;
  }
  return value;
}

}  // namespace fovea::cuda
