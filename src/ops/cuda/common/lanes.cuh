#pragma once

// Warps and their lanes.
namespace fovea::cuda {

inline constexpr int kWarp = 32;    ///< threads of a warp
inline constexpr int kGroup = 128;  ///< threads of a warp group, which issues WGMMA
inline constexpr unsigned kAllLanes = 0xffffffffu;

/// Number of the calling thread in its warp.
__device__ inline int lane_index() { return static_cast<int>(threadIdx.x) % kWarp; }

/// Maximum over the four lanes that share a row of a tensor core's sums.
__device__ inline float quad_max(float value) {
  value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, 1));
  return fmaxf(value, __shfl_xor_sync(kAllLanes, value, 2));
}
/// Sum over the same four lanes.
__device__ inline float quad_sum(float value) {
  value += __shfl_xor_sync(kAllLanes, value, 1);
  return value + __shfl_xor_sync(kAllLanes, value, 2);
}

/// Sum over the lanes up to this one, of `count` lanes that matter.
__device__ inline int sum_up_to_lane(int value, int count = kWarp) {
#pragma unroll
  for (int offset = 1; offset < kWarp; offset *= 2) {
    if (offset >= count) break;
    const int lower = __shfl_up_sync(kAllLanes, value, offset);
    if (lane_index() >= offset) value += lower;
  }
  return value;
}

}  // namespace fovea::cuda
