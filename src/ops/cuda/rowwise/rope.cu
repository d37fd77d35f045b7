// Rotary embedding in two or more dimensions: angles once per forward, rotation of q and k per
// block.
//
// rope_angles: one thread per (row, column). Angles are rounded to f32 before the full-precision
// cosine and sine.
// rotate: one thread per four pairs (j, j + head_dim / 2) of one head of q or k, read and written
// in place with 8-byte accesses. Arithmetic in f32, one rounding. Traffic: 8 * rows * hidden bytes,
// angles from L1.
#include "ops/cuda/common/bf16.cuh"
#include "ops/cuda/common/launch.cuh"
#include "ops/cuda/common/operands.h"
#include "ops/cuda/rowwise/rotate.cuh"
#include "ops/cuda/rowwise/rowwise.h"

namespace fovea::cuda {

namespace {

constexpr int kBlock = 256;
constexpr int kPairs = 4;  // per thread

__global__ void __launch_bounds__(kBlock)
    rope_angles_kernel(const int4* positions, const float* inv_freq, int coordinates,
                       std::int64_t rows, int half, const std::int32_t* live_count, float* cos_out,
                       float* sin_out) {
  wait_for_predecessor();
  const std::int64_t total = live_rows(live_count, rows) * half;
  const std::int64_t first = std::int64_t{blockIdx.x} * kBlock + threadIdx.x;
  for (std::int64_t i = first; i < total; i += std::int64_t{gridDim.x} * kBlock) {
    const std::int64_t row = i / half;
    const int j = static_cast<int>(i - row * half);
    const int4 position = positions[row];  // y, x, height, width, or the coordinates
    float angle = 0.0f;
    if (coordinates == 0) {
      angle = __fmul_rn(static_cast<float>(2 * j < half ? position.x : position.y), inv_freq[j]);
    } else {
      const int numbers[] = {position.x, position.y, position.z, position.w};
#pragma unroll
      for (int a = 0; a < 4; ++a) {
        if (a >= coordinates) break;
        const float part = __fmul_rn(static_cast<float>(numbers[a]), inv_freq[a * half + j]);
        angle = __fadd_rn(angle, part);
      }
    }
    cos_out[i] = cosf(angle);
    sin_out[i] = sinf(angle);
  }
}

__global__ void __launch_bounds__(kBlock)
    rotate_kernel(__nv_bfloat16* qkv, const float* cos_in, const float* sin_in, std::int64_t rows,
                  int num_heads, int half, const std::int32_t* live_count) {
  let_successor_start();
  const int pieces = half / kPairs;               // of one head
  const int row_pieces = 2 * num_heads * pieces;  // heads of q, then heads of k
  const std::int64_t stride = std::int64_t{6} * num_heads * half;
  const std::int64_t total = live_rows(live_count, rows) * row_pieces;
  wait_for_predecessor();
  const std::int64_t first = std::int64_t{blockIdx.x} * kBlock + threadIdx.x;
  for (std::int64_t i = first; i < total; i += std::int64_t{gridDim.x} * kBlock) {
    const std::int64_t row = i / row_pieces;
    const int rest = static_cast<int>(i - row * row_pieces);
    const int head = rest / pieces;
    const int j = (rest - head * pieces) * kPairs;
    const Angles<kPairs> angles(cos_in + row * half + j, sin_in + row * half + j);
    __nv_bfloat16* const x = qkv + row * stride + head * 2 * half + j;
    RotaryPair<kPairs> pair = load_pair<kPairs>(x, half);
    rotate(angles, pair);
    store_pair(pair, x, half);
  }
}

}  // namespace

void rope_angles(CudaStream& stream, const ops::RopeAnglesArgs& args, int num_sms) {
  check_vectors("rope_angles", "positions", args.positions);
  const std::int64_t rows = args.positions.shape[0];
  const std::int64_t half = args.cos.shape[1];
  const std::int64_t coordinates = args.inv_freq.shape.rank() == 2 ? args.inv_freq.shape[0] : 0;
  launch(stream, &rope_angles_kernel, grid_for(rows * half, kBlock, num_sms), dim3(kBlock), 0,
         args.positions.as<int4>(), args.inv_freq.as<float>(), coordinates, rows, half,
         args.rows.count, args.cos.as<float>(), args.sin.as<float>());
}

void rotate(CudaStream& stream, const ops::HeadAttentionArgs& args, int num_sms) {
  const std::int64_t rows = args.qkv.shape[0];
  const std::int64_t half = args.head_dim / 2;
  const std::int64_t pieces = rows * 2 * args.num_heads * half / kPairs;
  launch(stream, &rotate_kernel, grid_for(pieces, kBlock, num_sms), dim3(kBlock), 0,
         args.qkv.as<__nv_bfloat16>(), args.cos.as<float>(), args.sin.as<float>(), rows,
         args.num_heads, half, args.sequences.rows.count);
}

}  // namespace fovea::cuda
