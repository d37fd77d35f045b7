#pragma once

// From the sums of our GEMM kernels (gemm/hopper/kernel.cuh) to rows of the output.

#include "fovea/tower/core/dtype.h"
#include "ops/cuda/common/bf16.cuh"
#include "ops/cuda/gemm/hopper/heads.cuh"
#include "ops/cuda/gemm/hopper/plan.cuh"
#include "ops/cuda/ptx/ptx.cuh"
#include "ops/cuda/ptx/tma.cuh"
#include "ops/cuda/rowwise/activation.cuh"
#include "ops/cuda/rowwise/quantize.cuh"

namespace fovea::cuda::gemm {

template <class Vector>
__device__ Vector vector_at(const std::byte* matrix, std::int64_t element) {
  return *reinterpret_cast<const Vector*>(matrix + element * sizeof(__nv_bfloat16));
}
/// Stores 16 bytes of a row of the output, whose elements have kSize bytes.
template <int kSize = sizeof(__nv_bfloat16)>
__device__ void store_vector(const HopperGemmWork& w, int row, int col, const Bf16x8& vector) {
  *reinterpret_cast<Bf16x8*>(w.out + (row * w.out_stride + col) * kSize) = vector;
}

/// The scales of a tile of E4M3: those of the rows and columns that a lane has, in the layout of
/// WGMMA, and those that its results are stored with.
template <class P>
class TileScales {
 public:
  /// Asks for those of columns from `col` on.
  __device__ void fetch(const HopperGemmWork& w, int col) {
#pragma unroll
    for (int k = 0; k < kPairs; ++k) {
      const int c = (k * kWarp + ptx::lane()) * 2;
      const bool has = c < P::kCols && col + c < w.out_features;
      cols_[k] = has ? *reinterpret_cast<const float2*>(w.scales.weight + col + c) : float2{};
    }
  }
  /// Asks for those of rows; the warp's begin at `row`. Stores the scales of the results, once for
  /// every row.
  __device__ void begin(const HopperGemmWork& w, int row, int col, int live) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int r = row + i / 2 * kUnitRows + i % 2 * 8 + ptx::lane() / 4;
      const bool has = r < live;
      rows_[i] = has ? w.scales.x[r] : 0.0f;
      if constexpr (P::kFp8Out) {
        constexpr float kSmallest = 1e-30f;  // of a row of zeros
        const float norm = has ? w.scales.x_norm[r] : 0.0f;
        const float bound =
            fmaxf(fmaf(norm, w.scales.largest_row, w.scales.largest_bias), kSmallest);
        inverse_[i] = kMaxE4M3 / bound;
        if (has && col == 0 && ptx::lane() % 4 == 0) w.scales.out[r] = bound / kMaxE4M3;
      }
    }
  }
  /// Of this lane's two columns of block `n` of the tile.
  [[nodiscard]] __device__ float2 of_cols(int n) const {
    const int from = n * 4 % kWarp + ptx::lane() % 4;
    const float2& pair = cols_[n * 4 / kWarp];
    return {__shfl_sync(kAllLanes, pair.x, from), __shfl_sync(kAllLanes, pair.y, from)};
  }
  /// Of this lane's rows of a unit, the lower and the upper.
  [[nodiscard]] __device__ float of_row(int unit, int half) const { return rows_[unit * 2 + half]; }
  /// What results of these rows are multiplied by before they are rounded.
  [[nodiscard]] __device__ float inverse_of_row(int unit, int half) const {
    return inverse_[unit * 2 + half];
  }

 private:
  static constexpr int kPairs = (P::kCols / 2 + kWarp - 1) / kWarp;
  static constexpr int kRows = 2 * P::kUnits;
  float2 cols_[kPairs];
  float rows_[kRows];
  float inverse_[P::kFp8Out ? kRows : 1];
};
/// In its place where operands are bf16.
struct NoScales {};

/// Finishes the sums of a tile and stores them. Each warp has 16 rows (of every unit of rows). Bias
/// and activation are applied in registers, in the layout of WGMMA; rounded rows pass through a
/// buffer in shared memory, in chunks of columns. From there TMA stores them in the background,
/// unless the warp's rows are not all live.
template <class P>
class TileStore {
 public:
  __device__ TileStore(const HopperGemmWork& w, Shared<P>& s, const CtaInCluster<P>& /*cta*/)
      : w_(w),
        heads_(w),
        buffers_(ptx::shared_address(s.out) + threadIdx.x / kWarp * P::kOutBuffers * kBufferBytes) {
  }

  /// Asks for what no predecessor writes of a tile that begins at (row, col), long before it is
  /// needed: the bias, and where rows of heads go.
  __device__ void prepare(int row, int col, int live) {
#pragma unroll
    for (int k = 0; k < kBiasPairs; ++k) {
      const int c = (k * kWarp + ptx::lane()) * 2;
      const bool has = w_.bias != nullptr && c < P::kCols && col + c < w_.out_features;
      bias_[k] = has ? vector_at<Bf16Pair>(w_.bias, col + c) : 0;
    }
    if constexpr (P::kFp8) scales_.fetch(w_, col);
    if constexpr (P::kHeadDim > 0) heads_.prepare(row + P::first_row_of_warp(), col, live);
  }
  /// The tile begins at (row, col).
  __device__ void begin(int row, int col, int live) {
    row_ = row + P::first_row_of_warp();
    col_ = col;
    live_ = live;
    if constexpr (P::kFp8) scales_.begin(w_, row_, col, live);
    if constexpr (P::kHeadDim > 0) heads_.begin();
  }
  /// Adds the bias and applies the activation, or rotates queries and keys.
  __device__ void finish_sums(typename P::Sums& sums) const {
    if constexpr (P::kFp8) scale(sums);
#pragma unroll
    for (int n = 0; n < P::kCols / 8; ++n) {
      const float2 bias = unpack_bf16(bias_of(n));
#pragma unroll
      for (auto& unit : sums) {
        unit[n][0] += bias.x;
        unit[n][1] += bias.y;
        unit[n][2] += bias.x;
        unit[n][3] += bias.y;
      }
    }
    if constexpr (P::kHeadDim > 0) {
      heads_.rotate(sums);
    } else {
      activate(w_.activation, sums);
    }
  }
  __device__ void store(const typename P::Sums& sums) const {
#pragma unroll
    for (int i = 0; i < kChunks; ++i) {
      if (row_of(i) >= live_) continue;
      const std::uint32_t buffer = buffers_ + i % P::kOutBuffers * kBufferBytes;
      wait_for_buffer(i == 0);
#pragma unroll
      for (int n = 0; n < P::kChunk / 8; ++n)
        write_block(i / kChunksOfUnit, n, sums[i / kChunksOfUnit][col_in_tile(i) / 8 + n], buffer);
      store_chunk(i, buffer);
    }
  }
  /// Call before the CTA ends.
  __device__ static void finish() {
    if constexpr (P::kBulkStores) ptx::wait_bulk_stores_read<0>();
  }

 private:
  static constexpr int kPieceCols = 16 / P::kOutSize;     // in 16 bytes
  static constexpr int kPieces = P::kChunk / kPieceCols;  // of a row of a chunk
  static constexpr int kChunksOfUnit = P::kCols / P::kChunk;
  static constexpr int kChunks = P::kUnits * kChunksOfUnit;
  static constexpr int kBufferBytes = kWarpRows * P::kChunkStride * P::kOutSize;
  static constexpr int kBiasPairs = (P::kCols / 2 + kWarp - 1) / kWarp;

  /// Waits until nobody reads the next buffer any more. The tile before may have ended with any.
  __device__ static void wait_for_buffer(bool first_of_tile) {
    if (P::kBulkStores && ptx::lane() == 0) {
      if (first_of_tile) {
        ptx::wait_bulk_stores_read<0>();
      } else {
        ptx::wait_bulk_stores_read<P::kOutBuffers - 1>();
      }
    }
    __syncwarp();
  }
  [[nodiscard]] __device__ int row_of(int chunk) const {
    return row_ + chunk / kChunksOfUnit * kUnitRows;
  }
  [[nodiscard]] static __device__ int col_in_tile(int chunk) {
    return chunk % kChunksOfUnit * P::kChunk;
  }
  /// Where 16 bytes of a row lie in a buffer, as TMA expects them.
  [[nodiscard]] static __device__ int place_of(int row, int piece) {
    const int swizzled = P::kSwizzled ? piece ^ (row / 2 % 4) : piece;
    return row * P::kChunkStride * P::kOutSize + swizzled * 16;
  }
  __device__ void scale(typename P::Sums& sums) const {
#pragma unroll
    for (int n = 0; n < P::kCols / 8; ++n) {
      const float2 cols = scales_.of_cols(n);
#pragma unroll
      for (int unit = 0; unit < P::kUnits; ++unit) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const float row = scales_.of_row(unit, half);
          sums[unit][n][2 * half] *= row * cols.x;
          sums[unit][n][2 * half + 1] *= row * cols.y;
        }
      }
    }
  }
  /// Rounds block `n` of eight columns of a chunk into the buffer.
  __device__ void write_block(int unit, int n, const float (&values)[4],
                              std::uint32_t buffer) const {
    if constexpr (P::kFp8Out) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float factor = scales_.inverse_of_row(unit, half);
        const int place = place_of(half * 8 + ptx::lane() / 4, n / 2) + n % 2 * 8;
        ptx::store_shared(buffer + place + ptx::lane() % 4 * 2,
                          pack_e4m3(values[2 * half] * factor, values[2 * half + 1] * factor));
      }
    } else {
      ptx::store_two_matrices(buffer + place_of(ptx::lane() % kWarpRows, n),
                              {pack_bf16(values[0], values[1]), pack_bf16(values[2], values[3])});
    }
  }
  /// Bias of this lane's two columns of block `n` of the tile.
  [[nodiscard]] __device__ Bf16Pair bias_of(int n) const {
    const int pair = n * 4;  // of the first lane
    return __shfl_sync(kAllLanes, bias_[pair / kWarp], pair % kWarp + ptx::lane() % 4);
  }
  /// From the buffer to memory.
  __device__ void store_chunk(int chunk, std::uint32_t buffer) const {
    const int col = col_ + col_in_tile(chunk);
    const int row = row_of(chunk);
    if constexpr (P::kHeadDim > 0) {
      __syncwarp();
      heads_.store_head(chunk, static_cast<const std::byte*>(__cvta_shared_to_generic(buffer)));
    } else if (P::kBulkStores && row + kWarpRows <= live_) {
      ptx::fence_proxy_async();  // makes the buffer visible to TMA
      __syncwarp();
      if (ptx::lane() == 0 && col < w_.out_features) ptx::store_tile(w_.out_map, col, row, buffer);
    } else {
      __syncwarp();
#pragma unroll
      for (int i = ptx::lane(); i < kWarpRows * kPieces; i += kWarp) {
        const int r = i / kPieces;
        const int c = i % kPieces * kPieceCols;
        if (row + r >= live_ || col + c >= w_.out_features) continue;
        Bf16x8 vector;  // or 16 numbers of E4M3
        ptx::load_shared(buffer + place_of(r, i % kPieces), vector.pair);
        store_vector<P::kOutSize>(w_, row + r, col + c, vector);
      }
    }
    if (P::kBulkStores && ptx::lane() == 0) ptx::commit_bulk_stores();  // an empty group counts
  }

  const HopperGemmWork& w_;
  std::conditional_t<(P::kHeadDim > 0), HeadStore<P>, NoHeads> heads_;
  std::conditional_t<P::kFp8, TileScales<P>, NoScales> scales_;
  std::uint32_t buffers_;  // of this warp
  int live_ = 0;
  int row_ = 0;  // first of this warp
  int col_ = 0;
  Bf16Pair bias_[kBiasPairs];  // of columns 2 lane and the next of the tile, and 64 further
};

}  // namespace fovea::cuda::gemm
