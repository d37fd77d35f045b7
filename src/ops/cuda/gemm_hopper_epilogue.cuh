#pragma once

// From the sums of our matrix-product kernels (gemm_hopper_kernel.cuh) to rows of the output.

#include "ops/cuda/bf16.cuh"
#include "ops/cuda/gemm_hopper_plan.cuh"
#include "ops/cuda/ptx.cuh"
#include "ops/cuda/tma.cuh"

namespace fovea::cuda::gemm {

constexpr float kLog2E = 1.4426950408889634f;

/// x / (1 + 2^exponent). Exponentials and reciprocals are the fast ones: their error is far below
/// the rounding of the result.
__device__ inline float over_one_plus_exp2(float x, float exponent) {
  return x * ptx::reciprocal_fast(1.0f + ptx::exp2_fast(exponent));
}
/// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) = x / (1 + exp(-2 sqrt(2 / pi) (...)))
__device__ inline float gelu_tanh(float x) {
  constexpr float kLinear = -1.5957691216057308f * kLog2E;
  constexpr float kCubic = 0.044715f * kLinear;
  return over_one_plus_exp2(x, x * fmaf(kCubic, x * x, kLinear));
}
__device__ inline float activate(Activation activation, float x) {
  constexpr float kInvSqrtTwo = 0.7071067811865476f;
  switch (activation) {
    case Activation::kNone: return x;
    case Activation::kGeluTanh: return gelu_tanh(x);
    case Activation::kGeluErf: return 0.5f * x * (1.0f + erff(x * kInvSqrtTwo));
    case Activation::kQuickGelu: return over_one_plus_exp2(x, -1.702f * kLog2E * x);
    case Activation::kSilu: return over_one_plus_exp2(x, -kLog2E * x);
  }
  return x;
}

__device__ inline void add_vector(const Bf16x8& more, float (&values)[kVector]) {
#pragma unroll
  for (int i = 0; i < kVector / 2; ++i) {
    const float2 two = unpack_bf16(more.pair[i]);
    values[2 * i] += two.x;
    values[2 * i + 1] += two.y;
  }
}

__device__ inline Bf16x8 vector_at(const std::byte* matrix, std::int64_t element) {
  return *reinterpret_cast<const Bf16x8*>(matrix + element * sizeof(__nv_bfloat16));
}
__device__ inline void store_vector(const HopperGemmWork& w, int row, int col,
                                    const float (&values)[kVector]) {
  store_floats(reinterpret_cast<__nv_bfloat16*>(w.out) + row * w.out_stride + col, values);
}

/// Eight floats of a row in shared memory. Lanes read halves in an order that spreads them over
/// the banks.
__device__ inline void load_sums(const float* from, float (&values)[kVector]) {
  const int first = static_cast<int>(threadIdx.x) & 4;
  const float4 a = *reinterpret_cast<const float4*>(from + first);
  const float4 b = *reinterpret_cast<const float4*>(from + (first ^ 4));
  const float4 low = first == 0 ? a : b;
  const float4 high = first == 0 ? b : a;
  values[0] = low.x, values[1] = low.y, values[2] = low.z, values[3] = low.w;
  values[4] = high.x, values[5] = high.y, values[6] = high.z, values[7] = high.w;
}

/// Writes the sums of 8 columns of 16 rows of a warp; `to` points at the first row and column.
__device__ inline void spread_sums(const float (&sums)[4], float* to, int stride, int lane) {
  float* const place = to + lane / 4 * stride + lane % 4 * 2;
  *reinterpret_cast<float2*>(place) = {sums[0], sums[1]};
  *reinterpret_cast<float2*>(place + 8 * stride) = {sums[2], sums[3]};
}

/// The bias of columns [8 lane, 8 lane + 8) of a tile. It is asked for long before it is needed.
template <class P>
__device__ Bf16x8 load_bias(const HopperGemmWork& w, int col) {
  static_assert(P::kCols <= kWarp * kVector);
  const int c = static_cast<int>(threadIdx.x) % kWarp * kVector;
  if (w.bias == nullptr || c >= P::kCols || col + c >= w.out_features) return {};
  return vector_at(w.bias, col + c);
}
/// What lane `lane` holds; for a whole warp.
__device__ inline Bf16x8 vector_of_lane(const Bf16x8& mine, int lane) {
  Bf16x8 theirs;
#pragma unroll
  for (int i = 0; i < kVector / 2; ++i)
    theirs.pair[i] = __shfl_sync(0xffffffffu, mine.pair[i], lane);
  return theirs;
}

/// The kChunk columns of 16 rows that a warp stores at once, from (row, col) of the output on, and
/// how its lanes share them in vectors of 8 columns.
template <class P>
struct Chunk {
  static constexpr int kVectors = P::kChunk / kVector;  // of a row
  static constexpr int kPerLane = (kWarpRows * kVectors + kWarp - 1) / kWarp;
  using Vectors = Bf16x8[kPerLane];

  int row;
  int col;
  int lane;

  [[nodiscard]] __device__ int index(int j) const { return lane + j * kWarp; }
  [[nodiscard]] __device__ int row_of(int j) const { return index(j) / kVectors; }
  [[nodiscard]] __device__ int col_of(int j) const { return index(j) % kVectors * kVector; }
  [[nodiscard]] __device__ bool has(const HopperGemmWork& w, int j, int live) const {
    return index(j) < kWarpRows * kVectors && row + row_of(j) < live &&
           col + col_of(j) < w.out_features;
  }
  __device__ void load_residual(const HopperGemmWork& w, int live, Vectors& residual) const {
    if (w.residual == nullptr) return;
#pragma unroll
    for (int j = 0; j < kPerLane; ++j) {
      if (!has(w, j, live)) continue;
      residual[j] =
          vector_at(w.residual, std::int64_t{row + row_of(j)} * w.out_features + col + col_of(j));
    }
  }
};

/// The activations that take many instructions, in shared memory and not unrolled.
template <class P>
__device__ void activate_chunk(const HopperGemmWork& w, int col, float* chunk) {
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x) % kWarp; i < kWarpRows * P::kChunk; i += kWarp) {
    const int c = i % P::kChunk;
    float& value = chunk[i / P::kChunk * P::kChunkStride + c];
    float sum = value;
    if (w.bias != nullptr && col + c < w.out_features)
      sum += __bfloat162float(reinterpret_cast<const __nv_bfloat16*>(w.bias)[col + c]);
    value = activate(w.activation, sum);
  }
  __syncwarp();
}

/// Stores a chunk whose sums the warp holds; they pass through `memory`. `first_vector` is where
/// its bias begins.
template <class P>
__device__ void store_chunk(const HopperGemmWork& w, const Chunk<P>& chunk, int live,
                            const Bf16x8& bias, int first_vector,
                            const typename Chunk<P>::Vectors& residual, float* memory,
                            const float (*sums)[4]) {
  __syncwarp();  // the chunk before has been read
#pragma unroll
  for (int n = 0; n < P::kChunk / 8; ++n)
    spread_sums(sums[n], memory + n * 8, P::kChunkStride, chunk.lane);
  __syncwarp();
  const bool simple = w.activation == Activation::kNone || w.activation == Activation::kGeluTanh;
  if (!simple) activate_chunk<P>(w, chunk.col, memory);
#pragma unroll
  for (int j = 0; j < Chunk<P>::kPerLane; ++j) {
    const Bf16x8 added = vector_of_lane(bias, first_vector + chunk.col_of(j) / kVector);
    if (!chunk.has(w, j, live)) continue;
    float values[kVector];
    load_sums(memory + chunk.row_of(j) * P::kChunkStride + chunk.col_of(j), values);
    if (simple) add_vector(added, values);
    if (w.activation == Activation::kGeluTanh) {
#pragma unroll
      for (float& value : values) value = gelu_tanh(value);
    }
    if (w.residual != nullptr) add_vector(residual[j], values);
    store_vector(w, chunk.row + chunk.row_of(j), chunk.col + chunk.col_of(j), values);
  }
}

/// Computes and stores the rows of one group in the tile whose corner, for the group, is (row,
/// col). The residual of a chunk is on its way while the one before is stored.
template <class P>
__device__ void store_tile(const HopperGemmWork& w, Shared<P>& s, int row, int col, int live,
                           const Bf16x8& bias, typename Chunk<P>::Vectors& residual,
                           const typename P::Sums& sums) {
  constexpr int kChunks = P::kCols / P::kChunk;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int lane = ptx::lane();
  const auto chunk_at = [&](int i) {
    return Chunk<P>{row + i / kChunks * kUnitRows, col + i % kChunks * P::kChunk, lane};
  };
#pragma unroll
  for (int i = 0; i < P::kUnits * kChunks; ++i) {
    const Chunk<P> chunk = chunk_at(i);
    typename Chunk<P>::Vectors next;
    if (i + 1 < P::kUnits * kChunks) {
      chunk_at(i + 1).load_residual(w, live, next);
    }
    if (chunk.row < live) {
      store_chunk<P>(w, chunk, live, bias, i % kChunks * Chunk<P>::kVectors, residual,
                     s.out + warp * kWarpRows * P::kChunkStride,
                     sums[i / kChunks] + i % kChunks * (P::kChunk / 8));
    }
#pragma unroll
    for (int j = 0; j < Chunk<P>::kPerLane; ++j) residual[j] = next[j];
  }
}

/// The rows of a tile that one block of its cluster adds up and stores.
template <class P>
struct Share {
  __device__ Share(int splits, int part)
      : rows_each((P::kRows + splits - 1) / splits),
        first(part * rows_each),
        rows(min(rows_each, P::kRows - first)) {}
  int rows_each;
  int first;
  int rows;
  [[nodiscard]] __device__ int bytes() const {
    return rows * P::kTileStride * static_cast<int>(sizeof(float));
  }
};

/// Where a block gathers its sums of a tile: the stages have been read by then.
template <class P>
__device__ float* gathered_sums(Shared<P>& s) {
  static_assert(sizeof(float) * P::kRows * P::kTileStride <= sizeof(s.x) + sizeof(s.weight));
  return reinterpret_cast<float*>(&s);
}

/// Sends every other block that shares the tile its share of this block's sums, in one piece:
/// stores from registers would each count on the other's barrier.
template <class P>
__device__ void send_parts(const HopperGemmWork& w, Shared<P>& s, const Place<P>& place,
                           const typename P::Sums& sums) {
  float* const tile = gathered_sums(s);
  const int thread = static_cast<int>(threadIdx.x);
  const int first = thread / kGroup * P::kGroupRows + thread % kGroup / kWarp * kWarpRows;
  const int lane = ptx::lane();
  ptx::named_barrier_sync(kConsumersBarrier, P::kConsumers);  // all have read the stages
#pragma unroll
  for (int unit = 0; unit < P::kUnits; ++unit) {
    float* const rows = tile + (first + unit * kUnitRows) * P::kTileStride;
#pragma unroll
    for (int n = 0; n < P::kCols / 8; ++n)
      spread_sums(sums[unit][n], rows + n * 8, P::kTileStride, lane);
  }
  ptx::fence_for_matrix_unit();  // makes them visible to the copy engine, too
  ptx::named_barrier_sync(kConsumersBarrier, P::kConsumers);
  if (thread >= w.splits || thread == place.part) return;
  const Share<P> theirs(w.splits, thread);
  const int to = place.rank_of_part(thread);
  ptx::copy_to_block(
      ptx::address_in_block(
          ptx::shared_address(s.out + place.part * theirs.rows_each * P::kTileStride), to),
      ptx::shared_address(tile + theirs.first * P::kTileStride), theirs.bytes(),
      ptx::address_in_block(ptx::shared_address(&s.parts), to));
}

/// Adds up the share of this block in the order of the blocks and stores it.
template <class P>
__device__ void store_share(const HopperGemmWork& w, Shared<P>& s, const Place<P>& place, int row,
                            int col, int live, const Bf16x8& bias) {
  constexpr int kVectors = P::kCols / kVector;
  const Share<P> share(w.splits, place.part);
  const float* const mine = gathered_sums(s) + share.first * P::kTileStride;
  const int rows = min(share.rows, live - row - share.first);
  const int count = share.rows * kVectors;
  const auto has = [&](int i) {
    return i < rows * kVectors && col + i % kVectors * kVector < w.out_features;
  };
  const auto residual_of = [&](int i) {
    Bf16x8 residual = {};
    if (w.residual != nullptr && has(i)) {
      const std::int64_t r = row + share.first + i / kVectors;
      residual = vector_at(w.residual, r * w.out_features + col + i % kVectors * kVector);
    }
    return residual;
  };
  int i = static_cast<int>(threadIdx.x);
  Bf16x8 residual = residual_of(i);
  ptx::barrier_wait(ptx::shared_address(&s.parts), 0);
  __syncwarp();
  ptx::cluster_arrive();  // this block needs nothing more from the others
#pragma unroll 1
  for (; i - static_cast<int>(threadIdx.x) % kWarp < count; i += P::kConsumers) {
    const Bf16x8 next = residual_of(i + P::kConsumers);
    const Bf16x8 added = vector_of_lane(bias, i % kVectors);
    if (has(i)) {
      const int place_in_tile = i / kVectors * P::kTileStride + i % kVectors * kVector;
      float values[kVector] = {};
      for (int p = 0; p < w.splits; ++p) {
        float more[kVector];
        load_sums(
            (p == place.part ? mine : s.out + p * share.rows_each * P::kTileStride) + place_in_tile,
            more);
#pragma unroll
        for (int j = 0; j < kVector; ++j) values[j] += more[j];
      }
      add_vector(added, values);
#pragma unroll
      for (float& value : values) value = activate(w.activation, value);
      if (w.residual != nullptr) add_vector(residual, values);
      store_vector(w, row + share.first + i / kVectors, col + i % kVectors * kVector, values);
    }
    residual = next;
  }
  __syncwarp();
  ptx::cluster_wait();  // no block ends while its sums are on their way to another
}

}  // namespace fovea::cuda::gemm
