#pragma once

#include "ops/cuda/common/bf16.cuh"
#include "ops/cuda/common/lanes.cuh"
#include "ops/cuda/grid_attention/steps.cuh"

// Relative positions in the Hopper kernel for grid attention: tables that stay in shared memory for
// the lifetime of a CTA, and what they add to the scores of the 16 queries of a warp.
namespace fovea::cuda {

/// Rows of a table in shared memory: 16 bytes more than they hold, against bank conflicts.
inline constexpr int kGridTableStride = kGridDim + 8;

/// Sizes of the tables and of the biases behind them.
struct GridTables {
  int rows_h;       ///< of the table of relative rows
  int rows_w;       ///< of relative columns
  int bias_stride;  ///< floats from one query to the next: eight queries in different banks

  __host__ __device__ GridTables(int height, int width)
      : rows_h(2 * height - 1 + kSlack),
        rows_w(2 * width - 1 + kSlack),
        bias_stride(((height > width ? height : width) + 23) / 32 * 32 + 8) {}

  [[nodiscard]] __host__ __device__ int table_bytes() const {
    return (rows_h + rows_w) * kGridTableStride * static_cast<int>(sizeof(__nv_bfloat16));
  }
  [[nodiscard]] __host__ __device__ int bias_bytes(int queries) const {
    return queries * bias_stride * static_cast<int>(sizeof(float));
  }

  /// Rounds both tables to bf16 in shared memory, zeros behind. For all threads of a CTA.
  __device__ void load(const GridWork& w, __nv_bfloat16* tables) const {
    load_table(w.rel_pos_h, 2 * w.height - 1, rows_h, tables);
    load_table(w.rel_pos_w, 2 * w.width - 1, rows_w, tables + rows_h * kGridTableStride);
  }

 private:
  static constexpr int kSlack = 16;  // rows beyond the last that a matrix load may touch

  __device__ static void load_table(const float* from, int rows, int padded_rows,
                                    __nv_bfloat16* to) {
    for (int i = static_cast<int>(threadIdx.x); i < padded_rows * kGridDimBlocks;
         i += static_cast<int>(blockDim.x)) {
      const int row = i / kGridDimBlocks;
      const int dim = i % kGridDimBlocks * 8;
      float values[8] = {};
      if (row < rows) load_floats<8>(from + row * kGridDim + dim, values);
      store_floats<8>(to + row * kGridTableStride + dim, values);
    }
  }
};

/// Biases of the 16 queries of a warp. Lane l has queries l / 4 and l / 4 + 8.
template <class P>
class WarpBiases {
 public:
  using Queries = std::uint32_t[kGridDim / 16][4];  // operands of ptx::multiply_add

  /// @param bias shared memory of this warp, 16 rows of sizes.bias_stride floats.
  __device__ WarpBiases(const GridTables& sizes, const __nv_bfloat16* tables, float* bias)
      : table_h_(tables),
        table_w_(tables + sizes.rows_h * kGridTableStride),
        stride_(sizes.bias_stride),
        bias_(bias),
        lane_(lane_index()) {}

  /// Computes what columns and rows of keys add to the scores of queries first, first + 1, ... of
  /// an image; those beyond `last` count as the last. Columns go to registers, times
  /// `column_factor`, rows stay in shared memory, times `row_factor`.
  __device__ void compute(const Queries& q, int first, int last, int height, float column_factor,
                          float row_factor, typename P::Columns& columns) {
    const int low = min(first, last);
    const int query[2] = {min(first + lane_ / 4, last), min(first + lane_ / 4 + 8, last)};
    const bool one_row = low / P::kWidth == last / P::kWidth;
    multiply(q, {table_w_,
                 P::kWidth,
                 column_factor,
                 {query[0] % P::kWidth, query[1] % P::kWidth},
                 one_row ? low % P::kWidth : 0,
                 one_row ? last % P::kWidth : P::kWidth - 1});
#pragma unroll
    for (int n = 0; n < P::kColumnBlocks; ++n) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const auto two = *reinterpret_cast<const float2*>(of(r) + n * 8 + lane_ % 4 * 2);
        columns[n][2 * r] = two.x;
        columns[n][2 * r + 1] = two.y;
      }
    }
    multiply(q, {table_h_,
                 height,
                 row_factor,
                 {query[0] / P::kWidth, query[1] / P::kWidth},
                 low / P::kWidth,
                 last / P::kWidth});
  }

  /// What rows of keys add to query 0 or 1 of this lane.
  [[nodiscard]] __device__ float* of(int query) const {
    return bias_ + (lane_ / 4 + 8 * query) * stride_;
  }

 private:
  struct Axis {
    const __nv_bfloat16* table;
    int side;
    float factor;
    int places[2];  // of this lane's queries
    int low;        // of all queries of the warp
    int high;
  };

  /// bias[query][k] = factor * q . table[p - k + side - 1], p the place of the query
  __device__ void multiply(const Queries& q, const Axis& axis) {
    __syncwarp();  // everyone has read the biases before
    const int row = lane_ / 16 * 8 + lane_ % 8;
    const int dim = lane_ / 8 % 2 * 8;
    for (int first = axis.low; first < axis.high + axis.side; first += 16) {
      float products[2][4] = {};
#pragma unroll
      for (int step = 0; step < kGridDim / 16; ++step) {
        std::uint32_t m[4];
        ptx::load_matrices(
            ptx::shared_address(axis.table + (first + row) * kGridTableStride + step * 16 + dim),
            m);
        ptx::multiply_add(products[0], q[step], m[0], m[1]);
        ptx::multiply_add(products[1], q[step], m[2], m[3]);
      }
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const int query = i / 2 % 2;
        const int entry = first + i / 4 * 8 + lane_ % 4 * 2 + i % 2;
        const int key = axis.places[query] + axis.side - 1 - entry;
        if (key >= 0 && key < axis.side) of(query)[key] = axis.factor * products[i / 4][i % 4];
      }
    }
    __syncwarp();
  }

  const __nv_bfloat16* table_h_;
  const __nv_bfloat16* table_w_;
  int stride_;
  float* bias_;
  int lane_;
};

}  // namespace fovea::cuda
