#pragma once

// A tile of the portable kernel for grid attention (grid_attention/mma.cu): what a CTA knows, and
// its operands on the way to the tensor cores.

#include "ops/cuda/common/bf16.cuh"
#include "ops/cuda/common/lanes.cuh"
#include "ops/cuda/grid_attention/grid_attention.h"
#include "ops/cuda/grid_attention/window.cuh"
#include "ops/cuda/ptx/ptx.cuh"

namespace fovea::cuda::grid_mma {

inline constexpr int kWarps = 4;
inline constexpr int kThreads = kWarps * kWarp;
inline constexpr int kQueries = kWarps * 16;  // of a CTA
inline constexpr int kKeys = 64;              // of a step
inline constexpr int kStages = 2;

/// Keys and values of one step, or relative positions, [kKeys][kDim] each; rows padded by 16 bytes
/// so that eight rows of a matrix load fall into different banks.
template <int kDim>
struct Stage {
  __nv_bfloat16 keys[kKeys][kDim + 8];
  __nv_bfloat16 values[kKeys][kDim + 8];
};

/// Row and column of a key, for each key of a step.
struct KeyPlaces {
  short2 at[kStages][kKeys];
};

/// What every thread of a CTA knows.
struct Block {
  const GridWork& work;
  GridColumns columns;
  GridWindow window;
  int head;
  int first_query;

  [[nodiscard]] __device__ std::int64_t channels() const {
    return std::int64_t{work.num_heads} * work.head_dim;
  }
  /// Part 0 (q), 1 (k) or 2 (v) of a row's head.
  [[nodiscard]] __device__ const __nv_bfloat16* row(int row, int part) const {
    return reinterpret_cast<const __nv_bfloat16*>(work.qkv) +
           (std::int64_t{row} * 3 + part) * channels() + head * work.head_dim;
  }
  [[nodiscard]] __device__ __nv_bfloat16* out_row(int row) const {
    return reinterpret_cast<__nv_bfloat16*>(work.out) + row * channels() + head * work.head_dim;
  }
  [[nodiscard]] __device__ const float* pad(int part) const {
    return work.pad_qkv + part * channels() + head * work.head_dim;
  }
};

/// The two queries of this lane.
struct LaneQueries {
  int in_block;    ///< number of the first in its block; the other is 8 further
  int rows[2];     ///< in qkv; -1 for a query that does not exist
  int2 places[2];  ///< in the window; of the last one for a query that does not exist

  __device__ explicit LaneQueries(const Block& b)
      : in_block(static_cast<int>(threadIdx.x) / kWarp * 16 + lane_index() / 4) {
    const int num_queries = b.window.num_queries();
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int query = b.first_query + in_block + 8 * r;
      places[r] = b.window.place_of_query(min(query, num_queries - 1));
      rows[r] = query < num_queries ? b.window.row_of(b.work, places[r].y, places[r].x) : -1;
    }
  }
};

/// Writes eight numbers, rounded.
__device__ inline void store_rounded(const float* from, __nv_bfloat16* to) {
  float values[8];
  load_floats<8>(from, values);
  store_floats<8>(to, values);
}

/// Starts copying keys and values [first, first + kKeys) of the window, and stores their places;
/// zeros beyond its end.
template <int kDim>
__device__ void fetch(const Block& b, int first, Stage<kDim>& stage, short2* places) {
  constexpr int kPieces = kDim / 8;  // 16-byte pieces of a row
  const GridWork& w = b.work;
  const int num_keys = w.side_h * w.side_w;
#pragma unroll
  for (int i = static_cast<int>(threadIdx.x); i < kKeys * kPieces; i += kThreads) {
    const int row = i / kPieces;
    const int dim = i % kPieces * 8;
    const int key = first + row;
    const int2 place = b.columns.split(key);
    const int token = key < num_keys ? b.window.row_of(w, place.y, place.x) : -1;
    if (dim == 0) {
      places[row] =
          make_short2(static_cast<short>(min(place.y, w.side_h - 1)), static_cast<short>(place.x));
    }
    if (key < num_keys && token < 0 && dim < w.head_dim) {
      store_rounded(b.pad(1) + dim, &stage.keys[row][dim]);
      store_rounded(b.pad(2) + dim, &stage.values[row][dim]);
      continue;
    }
    const bool valid = token >= 0 && dim < w.head_dim;
    const __nv_bfloat16* const from = b.row(max(token, b.window.first_row), 1) + (valid ? dim : 0);
    ptx::copy_async(ptx::shared_address(&stage.keys[row][dim]), from, valid);
    ptx::copy_async(ptx::shared_address(&stage.values[row][dim]), from + b.channels(), valid);
  }
}

/// The 16 queries of this warp as an operand of the tensor cores; lane l has rows l / 4 and
/// l / 4 + 8.
template <int kDim>
__device__ void load_queries(const Block& b, const int (&rows)[2],
                             std::uint32_t (&q)[kDim / 16][4]) {
  const int lane = lane_index();
#pragma unroll
  for (int i = 0; i < kDim / 16 * 4; ++i) {
    const int dim = i / 2 * 8 + lane % 4 * 2;
    const int row = rows[i % 2];
    q[i / 4][i % 4] = row >= 0 && dim < b.work.head_dim
                          ? *reinterpret_cast<const std::uint32_t*>(b.row(row, 0) + dim)
                          : 0u;
  }
}

/// products[16 x kKeys] += q rows^T of one warp.
template <int kDim>
__device__ void multiply_rows(const std::uint32_t (&q)[kDim / 16][4],
                              const __nv_bfloat16 (&rows)[kKeys][kDim + 8],
                              float (&products)[kKeys / 8][4]) {
  const int lane = lane_index();
  const int row = lane / 16 * 8 + lane % 8;
  const int dim = lane / 8 % 2 * 8;
#pragma unroll
  for (int step = 0; step < kDim / 16; ++step) {
#pragma unroll
    for (int pair = 0; pair < kKeys / 16; ++pair) {
      std::uint32_t m[4];
      ptx::load_matrices(ptx::shared_address(&rows[pair * 16 + row][step * 16 + dim]), m);
      ptx::multiply_add(products[2 * pair], q[step], m[0], m[1]);
      ptx::multiply_add(products[2 * pair + 1], q[step], m[2], m[3]);
    }
  }
}

}  // namespace fovea::cuda::grid_mma
