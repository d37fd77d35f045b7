// RMS norms of the heads of q and k, and of v where it has one, in a projection, in place.
//
// Half a warp per head: lane l has dims [8 l, 8 l + 8) of it, with the weights of q, k and v in
// registers before the predecessor ends. Grid-stride over the heads of the live rows. Statistics in
// f32; rounded after the normalisation and after the weight, as rms_norm. Traffic: 8 bytes per
// number of q.
#include "ops/cuda/common/bf16.cuh"
#include "ops/cuda/common/lanes.cuh"
#include "ops/cuda/common/launch.cuh"
#include "ops/cuda/common/operands.h"
#include "ops/cuda/rowwise/rowwise.h"

namespace fovea::cuda {

namespace {

constexpr int kBlock = 256;
constexpr int kWidth = 8;          // bf16 elements of a 16-byte load
constexpr int kLanes = kWarp / 2;  // of a head, whose dims are at most 128
constexpr int kHeadsPerBlock = kBlock / kLanes;

struct HeadNormWork {
  __nv_bfloat16* qkv;
  const float* q_weight;
  const float* k_weight;
  const float* v_weight;  ///< or null: v stays what it is
  float epsilon;
  std::int64_t rows;
  int num_heads;
  int head_dim;
  const std::int32_t* live;
};

/// Sum over half a warp, given to each of its lanes.
__device__ float half_warp_sum(float value) {
#pragma unroll
  for (int offset = kLanes / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(kAllLanes, value, offset);
  }
  return value;
}

__global__ void __launch_bounds__(kBlock) normalize_heads_kernel(HeadNormWork w) {
  let_successor_start();
  const int dim = lane_index() % kLanes * kWidth;
  const bool active = dim < w.head_dim;
  float q_weight[kWidth] = {};
  float k_weight[kWidth] = {};
  float v_weight[kWidth] = {};
  if (active) {
    load_floats(w.q_weight + dim, q_weight);  // constant: no need to wait for the predecessor
    load_floats(w.k_weight + dim, k_weight);
    if (w.v_weight != nullptr) load_floats(w.v_weight + dim, v_weight);
  }
  const int row_heads = (w.v_weight == nullptr ? 2 : 3) * w.num_heads;  // of q, then of k, then v
  const std::int64_t total = live_rows(w.live, w.rows) * row_heads;
  wait_for_predecessor();
  // Both halves of a warp stay in the loop while one of them has a head.
  const std::int64_t mine = std::int64_t{threadIdx.x} / kLanes;
  for (std::int64_t first = std::int64_t{blockIdx.x} * kHeadsPerBlock; first < total;
       first += std::int64_t{gridDim.x} * kHeadsPerBlock) {
    const std::int64_t number = first + mine;
    const bool exists = active && number < total;
    const std::int64_t row = number / row_heads;
    const int head = static_cast<int>(number - row * row_heads);
    __nv_bfloat16* const x =
        w.qkv + (row * 3 * w.num_heads + head) * std::int64_t{w.head_dim} + dim;
    float values[kWidth] = {};
    if (exists) load_floats(x, values);
    float square = 0.0f;
#pragma unroll
    for (int j = 0; j < kWidth; ++j) square += values[j] * values[j];
    const float inv_root =
        rsqrtf(half_warp_sum(square) / static_cast<float>(w.head_dim) + w.epsilon);
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      const float weight = head < w.num_heads       ? q_weight[j]
                           : head < 2 * w.num_heads ? k_weight[j]
                                                    : v_weight[j];
      values[j] = __bfloat162float(__float2bfloat16_rn(values[j] * inv_root)) * weight;
    }
    if (exists) store_floats(x, values);
  }
}

}  // namespace

void normalize_heads(CudaStream& stream, const ops::HeadAttentionArgs& args, int num_sms) {
  const HeadNormWork work{.qkv = args.qkv.as<__nv_bfloat16>(),
                          .q_weight = args.norms.q.as<float>(),
                          .k_weight = args.norms.k.as<float>(),
                          .v_weight = args.norms.v.as<float>(),
                          .epsilon = args.norms.epsilon,
                          .rows = args.qkv.shape[0],
                          .num_heads = static_cast<int>(args.num_heads),
                          .head_dim = static_cast<int>(args.head_dim),
                          .live = args.sequences.rows.count};
  launch(stream, &normalize_heads_kernel,
         grid_for(work.rows * (work.v_weight == nullptr ? 2 : 3) * work.num_heads * kLanes, kBlock,
                  num_sms),
         dim3(kBlock), 0, work);
}

}  // namespace fovea::cuda
