#pragma once

// What relative positions add to the scores of a tile in the portable kernel for grid attention
// (grid_attention/mma.cu).

#include "ops/cuda/common/bf16.cuh"
#include "ops/cuda/common/lanes.cuh"
#include "ops/cuda/grid_attention/mma_tile.cuh"
#include "ops/cuda/ptx/ptx.cuh"

namespace fovea::cuda::grid_mma {

/// Floats from one query to the next among the biases: at least `side`, and such that the eight
/// queries of a warp's access fall into different banks.
__host__ __device__ constexpr int bias_stride(int side, int banks_apart) {
  constexpr int kBanks = 32;
  return (side - banks_apart + kBanks - 1) / kBanks * kBanks + banks_apart;
}
inline constexpr int kRowBanks = 4;  // eight queries, one row of keys each
inline constexpr int kColBanks = 8;  // four queries at a time, eight columns of keys each

/// Relative positions along one axis, and the places of the queries of a CTA and of a lane on it.
struct Axis {
  const float* table;  ///< [2 * side - 1, head_dim]
  int side;
  int low;  ///< place of the first query of the CTA
  int high;
  int places[2];   ///< of this lane's queries
  float* bias[2];  ///< of this lane's queries, [side]

  /// Entries [low, end()) can be met.
  [[nodiscard]] __device__ int end() const { return high + side; }
};

/// @param biases [kQueries][bias_stride(side_h, kRowBanks)] of the CTA, in shared memory.
__device__ inline Axis make_row_axis(const Block& b, const LaneQueries& own, float* biases) {
  const int last = min(b.first_query + kQueries, b.window.num_queries()) - 1;
  const int stride = bias_stride(b.work.side_h, kRowBanks);
  float* const bias = biases + own.in_block * stride;
  return {b.work.rel_pos_h,
          b.work.side_h,
          b.window.place_of_query(b.first_query).y,
          b.window.place_of_query(last).y,
          {own.places[0].y, own.places[1].y},
          {bias, bias + 8 * stride}};
}
/// @param biases [kQueries][bias_stride(side_w, kColBanks)] of the CTA, in shared memory.
__device__ inline Axis make_column_axis(const Block& b, const LaneQueries& own, float* biases) {
  const int stride = bias_stride(b.work.side_w, kColBanks);
  float* const bias = biases + own.in_block * stride;
  return {b.work.rel_pos_w,
          b.work.side_w,
          0,
          b.window.cols - 1,
          {own.places[0].x, own.places[1].x},
          {bias, bias + 8 * stride}};
}

/// Rounds entries [first, first + kKeys) of a table to bf16, zeros beyond those that can be met.
template <int kDim>
__device__ void load_entries(const Axis& axis, int head_dim, int first,
                             __nv_bfloat16 (&rows)[kKeys][kDim + 8]) {
  constexpr int kPieces = kDim / 8;
#pragma unroll
  for (int i = static_cast<int>(threadIdx.x); i < kKeys * kPieces; i += kThreads) {
    const int row = i / kPieces;
    const int dim = i % kPieces * 8;
    const bool exists = first + row < axis.end() && dim < head_dim;
    float values[8];  // loaded without a condition, so that all loads are under way at once
    load_floats<8>(axis.table + (exists ? (first + row) * head_dim + dim : 0), values);
#pragma unroll
    for (float& value : values) value = exists ? value : 0.0f;
    store_floats<8>(&rows[row][dim], values);
  }
}

/// bias[k] = log2 e * q . table[p - k + side - 1] for the keys k that meet the entries in `rows`.
template <int kDim>
__device__ void multiply_entries(const Axis& axis, const std::uint32_t (&q)[kDim / 16][4],
                                 int first, const __nv_bfloat16 (&rows)[kKeys][kDim + 8]) {
  const int lane = lane_index();
  float products[kKeys / 8][4] = {};
  multiply_rows<kDim>(q, rows, products);
#pragma unroll
  for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int entry = first + n * 8 + lane % 4 * 2 + i % 2;
      const int key = axis.places[i / 2] + axis.side - 1 - entry;
      if (key >= 0 && key < axis.side) axis.bias[i / 2][key] = products[n][i] * ptx::kLog2E;
    }
  }
}

/// Computes the biases of the queries of the CTA for every row and column of keys. Uses `stage`
/// as scratch.
template <int kDim>
__device__ void compute_biases(const Axis& y, const Axis& x, int head_dim,
                               const std::uint32_t (&q)[kDim / 16][4], Stage<kDim>& stage) {
  for (int done = 0; y.low + done < y.end() || x.low + done < x.end(); done += kKeys) {
    const bool has_y = y.low + done < y.end();
    const bool has_x = x.low + done < x.end();
    if (has_y) load_entries<kDim>(y, head_dim, y.low + done, stage.keys);
    if (has_x) load_entries<kDim>(x, head_dim, x.low + done, stage.values);
    __syncthreads();
    if (has_y) multiply_entries<kDim>(y, q, y.low + done, stage.keys);
    if (has_x) multiply_entries<kDim>(x, q, x.low + done, stage.values);
    __syncthreads();  // everyone has read the entries before the next ones come
  }
}

/// scores = scores * factor + bias, and minus infinity for keys at or beyond `valid`.
/// @param by_row, by_col biases of the two queries of this lane.
template <bool kPairs>
__device__ void add_bias(float factor, int valid, const short2* places, float* const (&by_row)[2],
                         float* const (&by_col)[2], float (&scores)[kKeys / 8][4]) {
  const int column = static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
  for (int n = 0; n < kKeys / 8; ++n) {
    const int key = n * 8 + column;
    const short2 left = places[key];
    const short2 right = kPairs ? left : places[key + 1];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float2 bias;
      if constexpr (kPairs) {  // both keys stand in one row of an even number of columns
        bias = *reinterpret_cast<const float2*>(by_col[r] + left.y);
        const float row = by_row[r][left.x];
        bias.x += row;
        bias.y += row;
      } else {
        bias = {by_row[r][left.x] + by_col[r][left.y], by_row[r][right.x] + by_col[r][right.y]};
      }
      scores[n][2 * r] = key < valid ? fmaf(scores[n][2 * r], factor, bias.x) : -INFINITY;
      scores[n][2 * r + 1] =
          key + 1 < valid ? fmaf(scores[n][2 * r + 1], factor, bias.y) : -INFINITY;
    }
  }
}

}  // namespace fovea::cuda::grid_mma
