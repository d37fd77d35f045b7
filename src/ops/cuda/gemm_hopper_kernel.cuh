#pragma once

// out[r, n] = activation(sum_k x[r, k] weight[n, k] + bias[n]) + residual[r, n] on Hopper.
//
// A thread block computes tiles of the output, one after the other. Its last warp only starts
// copies: tiles of 64 columns of x and weight move through a ring of stages in shared memory. The
// other warps, in groups of four, multiply. Groups either share a tile, each with its rows, or take
// whole tiles in turn, so that one multiplies while the other stores. Sums stay in registers; they
// pass through shared memory on their way out, so that rows are written in pieces of 16 bytes.
//
// Weights never change, so the first stages of them are brought before the kernel waits for its
// predecessor: a chain of products of few rows, whose time is that of reading weights, reads those
// of the next product while the one before still runs.
//
// Few tiles leave multiprocessors idle: then the blocks of a cluster share the sum of a tile, put
// their parts into shared memory, and each adds up a part of the tile in the order of the blocks.
// Sums have a fixed order in every case: equal inputs give equal bits.
#include <type_traits>

#include "ops/cuda/bf16.cuh"
#include "ops/cuda/gemm_hopper.h"
#include "ops/cuda/gemm_hopper_wgmma.cuh"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/ptx.cuh"
#include "ops/cuda/tma.cuh"
#include "ops/cuda/wgmma.cuh"

namespace fovea::cuda::gemm {

using ops::Activation;

constexpr int kWarp = 32;
constexpr int kGroup = 128;     // threads of a warp group
constexpr int kUnitRows = 64;   // of one instruction
constexpr int kWarpRows = 16;   // of those, one warp's
constexpr int kBlockCols = 64;  // of x and weight in a stage: 128 bytes
constexpr int kRowBytes = 2 * kBlockCols;
constexpr int kVector = 8;            // bf16 in 16 bytes
constexpr int kConsumersBarrier = 1;  // 0 is __syncthreads
constexpr int kFirstTurnBarrier = 2;  // one per group
/// Of the weights of its first tile, a block brings at most this much into L2 ahead of its turn.
constexpr int kAheadBytes = 128 << 10;

/// Distance in floats between rows of `cols` floats, so that 2 x 2 neighbours of eight rows, and
/// vectors of a row, lie in different banks.
constexpr int row_stride(int cols) {
  int stride = cols;
  while (stride % 32 != 8 && stride % 32 != 24) stride += 4;
  return stride;
}

/// How the warp groups and thread blocks of a kernel work together.
enum class Teamwork : std::uint8_t {
  kTogether,     ///< the groups of a block share a tile, each with its rows
  kAlternating,  ///< two groups take whole tiles in turn: one multiplies while the other stores
  kSplit,        ///< as kTogether, and the blocks of a cluster share the sum of a tile
};

/// Sizes of a kernel. Registers hold group_rows / 64 * cols / 2 sums of a thread.
template <Teamwork kWay, int kGroupCount, int kRowsOfGroup, int kTileCols, int kStageCount>
struct Plan {
  static constexpr int kGroups = kGroupCount;
  static constexpr int kGroupRows = kRowsOfGroup;
  static constexpr bool kTogether = kWay == Teamwork::kTogether;
  static constexpr bool kAlternating = kWay == Teamwork::kAlternating;
  static constexpr bool kSplit = kWay == Teamwork::kSplit;
  static constexpr int kRows = kAlternating ? kGroupRows : kGroups * kGroupRows;
  static constexpr int kCols = kTileCols;
  static constexpr int kStages = kStageCount;
  static constexpr int kUnits = kGroupRows / kUnitRows;
  static constexpr int kConsumers = kGroups * kGroup;
  static constexpr int kConsumerWarps = kConsumers / kWarp;
  // With two groups the copying warp brings three idle ones along: only whole groups can give
  // registers away. All start with 168, and what some get others must have given.
  static constexpr bool kShiftsRegisters = kGroups == 2;
  static constexpr int kThreads = kConsumers + (kShiftsRegisters ? kGroup : kWarp);
  static constexpr int kConsumerRegisters = 232;
  static constexpr int kCopyRegisters = 40;
  static_assert(!kShiftsRegisters || 2 * kConsumerRegisters + kCopyRegisters <= 3 * 168);
  static constexpr int kBlocksPerMultiprocessor = kGroups == 1 ? 2 : 1;
  static constexpr int kXBytes = kRows * kRowBytes;
  static constexpr int kWeightBytes = kCols * kRowBytes;
  /// Columns that a warp stores at once.
  static constexpr int kChunk = kCols % 48 == 0 ? 48 : kCols % 72 == 0 ? 72 : 32;
  static constexpr int kChunkStride = row_stride(kChunk);
  static constexpr int kTileStride = row_stride(kCols);
  /// On their way out, sums lie in a chunk of each warp, or in the parts of a tile from all blocks
  /// of the cluster; the last one may have fewer rows.
  static constexpr int kOutFloats = kSplit ? (kRows + HopperGemm::kMaxSplits) * kTileStride
                                           : kConsumerWarps * kWarpRows * kChunkStride;

  using Sums = float[kUnits][kCols / 8][4];
};

template <class P>
struct Shared {
  alignas(1024) std::byte x[P::kStages][P::kXBytes];
  alignas(1024) std::byte weight[P::kStages][P::kWeightBytes];
  alignas(16) float out[P::kOutFloats];
  std::uint64_t full[P::kStages];   // the copies of a stage have landed
  std::uint64_t empty[P::kStages];  // it has been read
  std::uint64_t parts;              // the parts of a tile have arrived from all blocks
};

/// The tiles of the output and who computes them: every gridDim.x / splits-th. Columns run fastest:
/// blocks at work share rows of x, and all weights fit the L2 cache.
template <class P>
class Tiles {
 public:
  __device__ explicit Tiles(const HopperGemmWork& w)
      : num_cols_((w.out_features + P::kCols - 1) / P::kCols),
        first_(static_cast<int>(blockIdx.x) / w.splits),
        step_(static_cast<int>(gridDim.x) / w.splits) {}

  [[nodiscard]] __device__ int first() const { return first_; }
  [[nodiscard]] __device__ int step() const { return step_; }
  [[nodiscard]] __device__ int count(int live_rows) const {
    return (live_rows + P::kRows - 1) / P::kRows * num_cols_;
  }
  [[nodiscard]] __device__ int row(int tile) const { return tile / num_cols_ * P::kRows; }
  [[nodiscard]] __device__ int col(int tile) const { return tile % num_cols_ * P::kCols; }

 private:
  int num_cols_;
  int first_;
  int step_;
};

__device__ inline int rank_in_cluster(const HopperGemmWork& w) {
  return static_cast<int>(blockIdx.x) % w.splits;
}

/// The blocks of 64 columns of x that one thread block sums.
struct Slice {
  int first;
  int count;
};

__device__ inline Slice slice_of_block(const HopperGemmWork& w) {
  const int rank = rank_in_cluster(w);
  const int first = rank * w.num_blocks / w.splits;
  return {first, (rank + 1) * w.num_blocks / w.splits - first};
}

/// Where the `block`-th block of a thread block passes through the ring of stages.
template <class P>
struct Stage {
  __device__ explicit Stage(unsigned block) : index(block % P::kStages), pass(block / P::kStages) {}
  unsigned index;
  unsigned pass;
  [[nodiscard]] __device__ std::uint32_t parity() const { return pass & 1; }
};

__device__ inline int live_rows_of(const HopperGemmWork& w) {
  return static_cast<int>(live_rows(w.live, w.rows));
}

// ---- The copying warp ----

/// Starts the copies. One lane of the warp acts; the others come along, because the compiler makes
/// better code where a warp stays together.
template <class P>
class Copier {
 public:
  __device__ Copier(const HopperGemmWork& work, Shared<P>& shared)
      : w_(work), s_(shared), slice_(slice_of_block(work)), elected_(ptx::elect_lane()) {}

  __device__ void run() {
    const Tiles<P> tiles(w_);
    const int early = min(P::kStages, slice_.count);
    const int row = tiles.row(tiles.first());
    const int col = tiles.col(tiles.first());
    for (int b = 0; b < early; ++b) copy_weight(static_cast<unsigned>(b), b, col);
    if (row == 0) {
      const int ahead = min(slice_.count, early + kAheadBytes / P::kWeightBytes);
#pragma unroll 1
      for (int b = early; b < ahead; ++b)
        if (elected_) ptx::prefetch_tile(w_.weight, (slice_.first + b) * kBlockCols, col);
    }
    // Rows beyond the live ones exist too, so the first rows need not wait for the count.
    wait_for_predecessor();
    for (int b = 0; b < early; ++b) copy_x(static_cast<unsigned>(b), b, row);
    const int num_tiles = tiles.count(live_rows_of(w_));
    if (tiles.first() >= num_tiles) {  // nothing to do; but copies must not outlive the block
      for (int b = 0; b < early; ++b) ptx::barrier_wait(ptx::shared_address(&s_.full[b]), 0);
      return;
    }
    auto block = static_cast<unsigned>(early);
    int first = early;
    for (int tile = tiles.first(); tile < num_tiles; tile += tiles.step()) {
#pragma unroll 1
      for (int b = first; b < slice_.count; ++b, ++block) {
        const Stage<P> stage(block);
        ptx::barrier_wait(ptx::shared_address(&s_.empty[stage.index]), stage.parity() ^ 1);
        copy_x(stage.index, b, tiles.row(tile));
        copy_weight(stage.index, b, tiles.col(tile));
      }
      first = 0;
    }
  }

 private:
  /// `b` counts the blocks of columns of the slice.
  __device__ void copy_weight(unsigned stage, int b, int col) const {
    if (!elected_) return;
    ptx::copy_tile(ptx::shared_address(s_.weight[stage]), w_.weight,
                   (slice_.first + b) * kBlockCols, col, ptx::shared_address(&s_.full[stage]));
  }
  /// Also says how much the stage will receive, which may be after it has.
  __device__ void copy_x(unsigned stage, int b, int row) const {
    if (!elected_) return;
    const std::uint32_t full = ptx::shared_address(&s_.full[stage]);
    ptx::barrier_arrive_expecting(full, P::kXBytes + P::kWeightBytes);
    ptx::copy_tile(ptx::shared_address(s_.x[stage]), w_.x, (slice_.first + b) * kBlockCols, row,
                   full);
  }

  const HopperGemmWork& w_;
  Shared<P>& s_;
  Slice slice_;
  bool elected_;
};

// ---- The multiplying groups ----

/// Lets go of a stage once per warp.
template <class P>
__device__ void release(Shared<P>& s, unsigned block) {
  if (threadIdx.x % kWarp == 0)
    ptx::barrier_arrive(ptx::shared_address(&s.empty[Stage<P>(block).index]));
}

/// Alternating groups multiply in turn. Without turns, a group that waits for a stage which the
/// other has yet to go through several times could not tell one pass from the next but one.
__device__ inline void wait_for_turn(int group) {
  ptx::named_barrier_sync(kFirstTurnBarrier + group, 2 * kGroup);
}
__device__ inline void pass_turn(int group) {
  ptx::named_barrier_arrive(kFirstTurnBarrier + (group ^ 1), 2 * kGroup);
}

/// Sums `count` blocks of columns, the first being the `block`-th that passes through the ring.
template <class P>
__device__ void multiply(Shared<P>& s, unsigned block, int count, int first_row,
                         typename P::Sums& sums) {
  constexpr int kStepBytes = 32;  // 16 columns, of one instruction
  constexpr int kUnitBytes = kUnitRows * kRowBytes;
  for (int b = 0; b < count; ++b, ++block) {
    const Stage<P> stage(block);
    ptx::barrier_wait(ptx::shared_address(&s.full[stage.index]), stage.parity());
    const std::uint64_t x =
        ptx::tile_descriptor(ptx::shared_address(s.x[stage.index] + first_row * kRowBytes));
    const std::uint64_t weight = ptx::tile_descriptor(ptx::shared_address(s.weight[stage.index]));
    ptx::products_begin();
#pragma unroll
    for (int step = 0; step < kBlockCols / 16; ++step) {
#pragma unroll
      for (int unit = 0; unit < P::kUnits; ++unit) {
        ptx::TileProduct<P::kCols>::start(
            sums[unit], ptx::advance_operand(x, unit * kUnitBytes + step * kStepBytes),
            ptx::advance_operand(weight, step * kStepBytes), b > 0 || step > 0);
      }
    }
    ptx::products_commit();
    asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");  // the products of block - 1
    if (b > 0) release<P>(s, block - 1);
  }
  if constexpr (P::kAlternating) pass_turn(static_cast<int>(threadIdx.x) / kGroup);
#pragma unroll
  for (int unit = 0; unit < P::kUnits; ++unit) ptx::products_wait<0>(sums[unit]);
  release<P>(s, block - 1);
}

/// Exponentials are the fast ones: their error is far below the rounding of the result.
__device__ inline float over_one_plus_exp(float x, float exponent) {
  constexpr float kLog2E = 1.4426950408889634f;
  return __fdividef(x, 1.0f + ptx::exp2_fast(exponent * kLog2E));
}
__device__ inline float gelu_tanh(float x) {
  constexpr float kTwoSqrtTwoOverPi = 1.5957691216057308f;
  return over_one_plus_exp(x, -kTwoSqrtTwoOverPi * (x + 0.044715f * x * x * x));
}
__device__ inline float activate(Activation activation, float x) {
  constexpr float kInvSqrtTwo = 0.7071067811865476f;
  switch (activation) {
    case Activation::kNone: return x;
    case Activation::kGeluTanh: return gelu_tanh(x);
    case Activation::kGeluErf: return 0.5f * x * (1.0f + erff(x * kInvSqrtTwo));
    case Activation::kQuickGelu: return over_one_plus_exp(x, -1.702f * x);
    case Activation::kSilu: return over_one_plus_exp(x, -x);
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
  __device__ Share(int splits, int rank)
      : rows_each((P::kRows + splits - 1) / splits),
        first(rank * rows_each),
        rows(min(rows_each, P::kRows - first)) {}
  int rows_each;
  int first;
  int rows;
  [[nodiscard]] __device__ int bytes() const {
    return rows * P::kTileStride * static_cast<int>(sizeof(float));
  }
};

/// Sends every block of the cluster its share of this block's sums. They are put together in the
/// memory of the stages, which all products have read by then.
template <class P>
__device__ void send_parts(const HopperGemmWork& w, Shared<P>& s, const typename P::Sums& sums) {
  static_assert(sizeof(float) * P::kRows * P::kTileStride <= sizeof(s.x) + sizeof(s.weight));
  auto* const tile = reinterpret_cast<float*>(s.x);
  const int thread = static_cast<int>(threadIdx.x);
  const int first = thread / kGroup * P::kGroupRows + thread % kGroup / kWarp * kWarpRows;
  const int lane = ptx::lane();
  ptx::named_barrier_sync(kConsumersBarrier, P::kConsumers);
#pragma unroll
  for (int unit = 0; unit < P::kUnits; ++unit) {
    float* const rows = tile + (first + unit * kUnitRows) * P::kTileStride;
#pragma unroll
    for (int n = 0; n < P::kCols / 8; ++n)
      spread_sums(sums[unit][n], rows + n * 8, P::kTileStride, lane);
  }
  ptx::fence_for_matrix_unit();  // the copy engine sees the sums
  ptx::named_barrier_sync(kConsumersBarrier, P::kConsumers);
  if (thread >= w.splits) return;
  const Share<P> mine(w.splits, rank_in_cluster(w));
  const Share<P> theirs(w.splits, thread);
  ptx::copy_to_block(
      ptx::address_in_block(
          ptx::shared_address(s.out + rank_in_cluster(w) * mine.rows_each * P::kTileStride),
          thread),
      ptx::shared_address(tile + theirs.first * P::kTileStride), theirs.bytes(),
      ptx::address_in_block(ptx::shared_address(&s.parts), thread));
}

/// Adds up the share of this block in the order of the blocks and stores it.
template <class P>
__device__ void store_share(const HopperGemmWork& w, Shared<P>& s, int row, int col, int live,
                            const Bf16x8& bias) {
  constexpr int kVectors = P::kCols / kVector;
  const Share<P> share(w.splits, rank_in_cluster(w));
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
      const float* part = s.out + i / kVectors * P::kTileStride + i % kVectors * kVector;
      float values[kVector] = {};
      for (int p = 0; p < w.splits; ++p, part += share.rows_each * P::kTileStride) {
        float more[kVector];
        load_sums(part, more);
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

template <class P>
__device__ void multiply_tiles(const HopperGemmWork& w, Shared<P>& s) {
  const Tiles<P> tiles(w);
  const Slice slice = slice_of_block(w);
  const int group = static_cast<int>(threadIdx.x) / kGroup;
  const int warp_row = static_cast<int>(threadIdx.x) % kGroup / kWarp * kWarpRows;
  const int first_row = P::kAlternating ? 0 : group * P::kGroupRows;  // in a tile
  constexpr int kTurns = P::kAlternating ? P::kGroups : 1;
  const int turn = P::kAlternating ? group : 0;
  int tile = tiles.first() + turn * tiles.step();
  auto block = static_cast<unsigned>(turn * slice.count);
  if (P::kAlternating && group == 1) pass_turn(group);  // group 0 begins

  Bf16x8 bias = load_bias<P>(w, tiles.col(tile));
  wait_for_predecessor();
  const int live = live_rows_of(w);
  const int num_tiles = tiles.count(live);
  for (; tile < num_tiles; tile += kTurns * tiles.step()) {
    const int row = tiles.row(tile) + first_row + warp_row;
    const int col = tiles.col(tile);
    typename Chunk<P>::Vectors residual;
    // Asked for early, unless another group multiplies in the meantime and registers are short.
    if constexpr (P::kTogether) Chunk<P>{row, col, ptx::lane()}.load_residual(w, live, residual);
    if (tile != tiles.first()) bias = load_bias<P>(w, col);
    __syncwarp();
    typename P::Sums sums;
    if constexpr (P::kAlternating) wait_for_turn(group);
    multiply<P>(s, block, slice.count, first_row, sums);
    block += static_cast<unsigned>(kTurns * slice.count);
    if constexpr (P::kSplit) {
      send_parts<P>(w, s, sums);
      store_share<P>(w, s, tiles.row(tile), col, live, bias);
    } else {
      if constexpr (P::kAlternating)
        Chunk<P>{row, col, ptx::lane()}.load_residual(w, live, residual);
      store_tile<P>(w, s, row, col, live, bias, residual, sums);
    }
  }
}

template <class P>
__global__ void __launch_bounds__(P::kThreads, P::kBlocksPerMultiprocessor)
    gemm_kernel(const __grid_constant__ HopperGemmWork w) {
  extern __shared__ __align__(1024) std::byte memory[];
  Shared<P>& s = *reinterpret_cast<Shared<P>*>(memory);
  if (threadIdx.x == 0) {
    ptx::prefetch_map(w.weight);
    ptx::prefetch_map(w.x);
    constexpr int kReaders = P::kAlternating ? kGroup / kWarp : P::kConsumerWarps;
    for (int stage = 0; stage < P::kStages; ++stage) {
      ptx::barrier_init(ptx::shared_address(&s.full[stage]), 1);
      ptx::barrier_init(ptx::shared_address(&s.empty[stage]), kReaders);
    }
    if constexpr (P::kSplit) {
      const std::uint32_t parts = ptx::shared_address(&s.parts);
      ptx::barrier_init(parts, 1);
      ptx::barrier_arrive_expecting(parts,
                                    w.splits * Share<P>(w.splits, rank_in_cluster(w)).bytes());
    }
    ptx::fence_barriers();
  }
  __syncthreads();
  if constexpr (P::kSplit) {  // before anything is sent, all blocks are there to receive it
    ptx::cluster_arrive();
    ptx::cluster_wait();
  }
  const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / kWarp, 0);
  if (warp < P::kConsumerWarps) {
    if constexpr (P::kShiftsRegisters) ptx::grow_registers<P::kConsumerRegisters>();
    multiply_tiles<P>(w, s);
  } else {
    if constexpr (P::kShiftsRegisters) ptx::shrink_registers<P::kCopyRegisters>();
    if (warp == P::kConsumerWarps) Copier<P>(w, s).run();
  }
}

template <class P>
void launch_gemm(CudaStream& stream, const HopperGemmWork& work, int num_blocks) {
  const DeviceGuard guard(stream.device_index());
  FOVEA_CUDA_CHECK(cudaFuncSetAttribute(&gemm_kernel<P>,
                                        cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(sizeof(Shared<P>))));
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim.x = static_cast<unsigned>(work.splits);
  attributes[1].val.clusterDim.y = 1;
  attributes[1].val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(num_blocks));
  config.blockDim = dim3(P::kThreads);
  config.dynamicSmemBytes = sizeof(Shared<P>);
  config.stream = stream.handle();
  config.attrs = attributes;
  config.numAttrs = P::kSplit ? 2 : 1;
  FOVEA_CUDA_CHECK(cudaLaunchKernelEx(&config, &gemm_kernel<P>, work));
}

template <class P>
constexpr HopperGemmKernel kernel_of(const char* name) {
  return {name,      P::kRows,       P::kCols, P::kBlocksPerMultiprocessor, P::kAlternating,
          P::kSplit, &launch_gemm<P>};
}

}  // namespace fovea::cuda::gemm
