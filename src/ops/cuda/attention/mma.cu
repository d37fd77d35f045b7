// Softmax attention over packed sequences with the tensor-core instructions of one warp.
//
// A block computes 64 query rows of one head; a warp owns 16 of them, so the running maximum,
// sum and output of a row live in the four lanes that hold its scores. Keys and values come in
// blocks of 64 or 32, counted from the start of the sequence, double-buffered in shared memory;
// rows beyond the sequence are read as zeros and their scores masked. Scores never leave registers:
//   m' = max(m, max_j s_j),  p_j = 2^((s_j - m') scale log2 e),
//   l' = l 2^((m - m') scale log2 e) + sum_j p_j,  o' = o 2^((m - m') scale log2 e) + sum_j p_j v_j
// and the result is o / l. Statistics and sums are f32; p is rounded to bf16 for the second
// product, and the result once. Head dims are padded to a multiple of 16 with zeros in shared
// memory. Sums of a tile pass through shared memory, so that rows are written in pieces of 16
// bytes. Source: Dao, FlashAttention-2, algorithm 1.
//
// Where there are few tiles, what counts is how long one takes: then the keys of a tile go round
// several groups of warps, each with sums of its own, and the parts are joined in the order of the
// groups at the end: with m = max_g m_g, o = sum_g o_g 2^((m_g - m) scale log2 e), l likewise.
//
// Blocks find their tiles by scanning cu_seqlens, every gridDim.y-th of a head: a graph is captured
// for many more sequences than most batches have, and starts no blocks for all of them. Blocks that
// find none write zeros to the rows that no sequence covers.
#include <algorithm>
#include <climits>

#include "ops/cuda/attention/softmax_mma.cuh"
#include "ops/cuda/attention/tiles.cuh"
#include "ops/cuda/common/bf16.cuh"
#include "ops/cuda/common/head_dims.h"
#include "ops/cuda/common/lanes.cuh"
#include "ops/cuda/common/launch.cuh"
#include "ops/cuda/ptx/ptx.cuh"

namespace fovea::cuda {

namespace {

constexpr int kWarpQueries = 16;
constexpr int kStages = 2;  // of each group

/// How a block works: `kSplitCount` groups of `kWarpCount` warps share the keys of a tile,
/// `kStepKeys` at a time; and how many blocks a multiprocessor has.
template <int kPaddedDim, int kWarpCount, int kStepKeys, int kSplitCount, int kBlockCount>
struct Plan {
  static constexpr int kDim = kPaddedDim;
  static constexpr int kWarps = kWarpCount;  // of a group
  static constexpr int kKeys = kStepKeys;
  static constexpr int kSplits = kSplitCount;
  static constexpr int kBlocks = kBlockCount;
  static constexpr int kGroupThreads = kWarps * kWarp;
  static constexpr int kThreads = kSplits * kGroupThreads;
  static constexpr int kQueries = kWarps * kWarpQueries;
  static constexpr int kPieces = kDim / 8;  // 16-byte pieces of a row
  static constexpr int kStride = kDim + 8;  // elements from row to row: eight rows of a matrix load
                                            // fall into different banks
  using Row = __nv_bfloat16[kStride];
  using Scores = float[kKeys / 8][4];
};
/// For many tiles: as many blocks as registers allow.
constexpr int blocks_for(int dim) { return dim <= 80 ? 4 : dim <= 96 ? 3 : 2; }
template <int kDim>
using ManyTiles = Plan<kDim, 4, 32, 1, blocks_for(kDim)>;
/// For few tiles: one block per multiprocessor. Two would fit, but the hardware likes to put blocks
/// that wait for their predecessor side by side, and other multiprocessors would be idle.
template <int kDim>
using FewTiles = Plan<kDim, 4, 64, 2, 1>;

/// Whether the second plan is faster. H100, 16 heads of 72, first and second: 64 rows 4.0 and
/// 3.7 us, 256 rows 10.2 and 6.0, 512 rows 24.2 and 10.2, 2 sequences of 256 rows 14.3 and 7.1, 4
/// of 256 15.6 and 12.9, 8 of 256 17.0 and 24.0; 8 of 64 rows 6.0 both, 16 of 64 7.3 and 10.0.
bool are_few_tiles(const AttentionWork& w) {
  constexpr std::int64_t kFewRowsOfHeads = 8192;
  constexpr std::int64_t kLongSequence = 128;
  const bool long_ones = w.rows >= kLongSequence * w.max_seqs;
  return std::int64_t{w.rows} * w.num_heads <= (long_ones ? 2 : 1) * kFewRowsOfHeads;
}

/// Keys and values of a step.
template <class P>
struct Stage {
  typename P::Row keys[P::kKeys];
  typename P::Row values[P::kKeys];
};

/// Sums of a tile over the keys of one group.
template <class P>
struct Partial {
  float out[P::kQueries][P::kStride];
};

template <class P>
struct alignas(16) Shared {
  Stage<P> stages[P::kSplits][kStages];
  typename P::Row queries[P::kQueries];
  float maximum[P::kSplits][P::kQueries];  // of what a group has summed
  float sum[P::kSplits][P::kQueries];

  /// What a group has summed lies where its stages were.
  [[nodiscard]] __device__ Partial<P>& partial(int group) {
    static_assert(sizeof(Partial<P>) <= sizeof(stages[0]));
    return *reinterpret_cast<Partial<P>*>(stages[group]);
  }
};

/// How kThreads threads copy `kRows` rows of a head to shared memory, in pieces of 16 bytes. Where
/// a thread's pieces lie is computed once, before the kernel waits for its predecessor.
template <class P, int kRows, int kThreads>
class RowCopier {
 public:
  __device__ RowCopier(int stride, int head_dim) {
#pragma unroll
    for (int t = 0; t < kTasks; ++t) {
      const int i = static_cast<int>(threadIdx.x) % kThreads + t * kThreads;
      const int row = i / P::kPieces;
      const int dim = i % P::kPieces * 8;
      // A piece beyond the head belongs to no row that exists: it always becomes zeros.
      row_[t] = dim < head_dim ? row : kNoRow;
      from_[t] = row * stride + dim;
      to_[t] = (row * P::kStride + dim) * static_cast<int>(sizeof(__nv_bfloat16));
    }
  }
  /// Starts copying rows from `from` on to `to`; rows from `valid_rows` on become zeros.
  __device__ void start(const __nv_bfloat16* from, int valid_rows, typename P::Row* to) const {
    const std::uint32_t shared = ptx::shared_address(to);
#pragma unroll
    for (int t = 0; t < kTasks; ++t) {
      if ((t + 1) * kThreads > kRows * P::kPieces && !has(t)) break;
      const bool valid = row_[t] < valid_rows;
      ptx::copy_async(shared + to_[t], valid ? from + from_[t] : from, valid);
    }
  }

 private:
  static constexpr int kTasks = (kRows * P::kPieces + kThreads - 1) / kThreads;
  static constexpr int kNoRow = INT_MAX;

  [[nodiscard]] __device__ static bool has(int t) {
    return static_cast<int>(threadIdx.x) % kThreads + t * kThreads < kRows * P::kPieces;
  }

  int row_[kTasks];
  int from_[kTasks];  // in elements
  int to_[kTasks];    // in bytes
};

/// The matrix-unit operand of the 16 queries of a warp.
template <class P>
__device__ void load_queries(const AttentionWork& w, const typename P::Row* rows,
                             std::uint32_t (&q)[P::kDim / 16][4]) {
  const int lane = lane_index();
#pragma unroll
  for (int step = 0; step < P::kDim / 16; ++step) {
    ptx::load_matrices(ptx::shared_address(&rows[lane % 16][step * 16 + lane / 16 * 8]), q[step]);
#pragma unroll
    for (std::uint32_t& pair : q[step]) pair = (pair & w.keep) ^ w.flip;
  }
}

/// scores[16 x kKeys] = q k^T of one warp.
template <class P>
__device__ void multiply_keys(const std::uint32_t (&q)[P::kDim / 16][4], const Stage<P>& stage,
                              typename P::Scores& scores) {
  const int lane = lane_index();
  const int key = lane / 16 * 8 + lane % 8;
  const int dim = lane / 8 % 2 * 8;
#pragma unroll
  for (int step = 0; step < P::kDim / 16; ++step) {
#pragma unroll
    for (int pair = 0; pair < P::kKeys / 16; ++pair) {
      std::uint32_t k[4];
      ptx::load_matrices(ptx::shared_address(&stage.keys[pair * 16 + key][step * 16 + dim]), k);
      ptx::multiply_add(scores[2 * pair], q[step], k[0], k[1]);
      ptx::multiply_add(scores[2 * pair + 1], q[step], k[2], k[3]);
    }
  }
}

/// Excludes keys at or beyond `valid` from the softmax.
template <class P>
__device__ void mask_scores(int valid, typename P::Scores& scores) {
  const int column = static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
  for (int n = 0; n < P::kKeys / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (n * 8 + column + i % 2 >= valid) scores[n][i] = -INFINITY;
    }
  }
}

/// Leaves what a warp has summed for join_partials.
template <class P>
__device__ void leave_partial(const SoftmaxSums<P::kDim>& acc, int group, int warp,
                              Shared<P>& shared) {
  const int lane = lane_index();
  auto& out = shared.partial(group).out;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = warp * kWarpQueries + lane / 4 + 8 * r;
#pragma unroll
    for (int n = 0; n < P::kDim / 8; ++n) {
      *reinterpret_cast<float2*>(&out[row][n * 8 + lane % 4 * 2]) = {acc.out[n][2 * r],
                                                                     acc.out[n][2 * r + 1]};
    }
    shared.maximum[group][row] = acc.maximum[r];  // four lanes hold the same
    shared.sum[group][row] = quad_sum(acc.sum[r]);
  }
}

/// Joins what the groups have summed and writes it, 16 bytes at a time; `out` points at the first
/// row and head of the tile. A group without keys has a maximum of -infinity and counts nothing.
template <class P>
__device__ void join_partials(float factor, Shared<P>& shared, int valid_rows, int head_dim,
                              int stride, __nv_bfloat16* out) {
  for (int i = static_cast<int>(threadIdx.x); i < P::kQueries * P::kPieces; i += P::kThreads) {
    const int row = i / P::kPieces;
    const int dim = i % P::kPieces * 8;
    if (row >= valid_rows || dim >= head_dim) continue;
    float maximum = -INFINITY;
#pragma unroll
    for (int g = 0; g < P::kSplits; ++g) maximum = fmaxf(maximum, shared.maximum[g][row]);
    float sum = 0.0f;
    float values[8] = {};
#pragma unroll
    for (int g = 0; g < P::kSplits; ++g) {
      const float weight = ptx::exp2_fast((shared.maximum[g][row] - maximum) * factor);
      sum += shared.sum[g][row] * weight;
      float part[8];
      load_floats(&shared.partial(g).out[row][dim], part);
#pragma unroll
      for (int j = 0; j < 8; ++j) values[j] += part[j] * weight;
    }
    const float inverse = 1.0f / sum;
#pragma unroll
    for (float& value : values) value *= inverse;
    store_floats(out + row * stride + dim, values);
  }
}

/// Zeros for the rows of one head that no sequence covers, by the blocks that found no tile, or by
/// all if each found some.
template <class P>
__device__ void clear_rest(const AttentionWork& w, int head, int num_sequences, int num_tiles) {
  const int blocks = static_cast<int>(gridDim.y);
  const int busy = num_tiles < blocks ? num_tiles : 0;
  const int index = static_cast<int>(blockIdx.y) - busy;
  if (index < 0) return;
  clear_rows(w, head, w.cu_seqlens[num_sequences] + index, blocks - busy,
             static_cast<int>(threadIdx.x), P::kThreads);
}

template <class P>
__global__ void __launch_bounds__(P::kThreads, P::kBlocks) attention_mma_kernel(AttentionWork w) {
  extern __shared__ __align__(16) std::byte memory[];
  auto& shared = *reinterpret_cast<Shared<P>*>(memory);
  const int group = static_cast<int>(threadIdx.x) / P::kGroupThreads;
  const int warp = static_cast<int>(threadIdx.x) % P::kGroupThreads / kWarp;
  Stage<P>(&stages)[kStages] = shared.stages[group];
  const int width = w.num_heads * w.head_dim;
  const int stride = 3 * width;
  const RowCopier<P, P::kQueries, P::kThreads> copy_queries(stride, w.head_dim);
  const RowCopier<P, P::kKeys, P::kGroupThreads> copy_keys(stride, w.head_dim);
  const float factor = w.scale * ptx::kLog2E;
  wait_for_predecessor();
  const int head = static_cast<int>(blockIdx.x);
  const int num_sequences = live_sequences(w);
  for (int number = static_cast<int>(blockIdx.y);; number += static_cast<int>(gridDim.y)) {
    int index = number;
    QueryTile tile;
    if (!find_tile(w.cu_seqlens, num_sequences, P::kQueries, index, tile)) {
      return clear_rest<P>(w, head, num_sequences, number - index);
    }
    const __nv_bfloat16* const sequence = reinterpret_cast<const __nv_bfloat16*>(w.qkv) +
                                          std::int64_t{tile.sequence_begin} * stride +
                                          head * w.head_dim;
    const int num_steps = (tile.sequence_rows + P::kKeys - 1) / P::kKeys;
    const auto fetch_step = [&](int step, Stage<P>& stage) {
      if (step < num_steps) {
        const int first = step * P::kKeys;
        const __nv_bfloat16* const keys = sequence + width + std::int64_t{first} * stride;
        copy_keys.start(keys, tile.sequence_rows - first, stage.keys);
        copy_keys.start(keys + width, tile.sequence_rows - first, stage.values);
      }
      ptx::commit_copies();
    };
    const int valid_rows = tile.sequence_rows - tile.first;
    copy_queries.start(sequence + std::int64_t{tile.first} * stride, valid_rows, shared.queries);
    fetch_step(group, stages[0]);
    fetch_step(group + P::kSplits, stages[1]);
    ptx::wait_copies<1>();
    __syncthreads();
    std::uint32_t q[P::kDim / 16][4];
    load_queries<P>(w, shared.queries + warp * kWarpQueries, q);

    SoftmaxSums<P::kDim> acc;
    const int num_rounds = (num_steps + P::kSplits - 1) / P::kSplits;
    for (int round = 0; round < num_rounds; ++round) {
      const int step = round * P::kSplits + group;
      Stage<P>& stage = stages[round % kStages];
      if (P::kSplits == 1 || step < num_steps) {
        typename P::Scores scores = {};
        multiply_keys<P>(q, stage, scores);
        if (step + 1 == num_steps) mask_scores<P>(tile.sequence_rows - step * P::kKeys, scores);
        update_softmax(factor, scores, acc);
        multiply_values(scores, stage.values, acc);
      }
      __syncthreads();  // everyone has read this stage before it is filled again
      if (round + 1 == num_rounds) break;
      fetch_step(step + kStages * P::kSplits, stage);
      ptx::wait_copies<1>();
      __syncthreads();
    }
    leave_partial<P>(acc, group, warp, shared);
    __syncthreads();
    join_partials<P>(factor, shared, valid_rows, w.head_dim, width,
                     reinterpret_cast<__nv_bfloat16*>(w.out) +
                         std::int64_t{tile.sequence_begin + tile.first} * width +
                         head * w.head_dim);
    __syncthreads();  // the sums have been read before the next tile comes
  }
}

template <class P>
void launch_plan(CudaStream& stream, const AttentionWork& w) {
  constexpr std::size_t kMoreThanHalf = 114 << 10;  // of a multiprocessor's 228 KB, 1 KB per block
  constexpr std::size_t kSharedBytes =
      P::kBlocks == 1 ? std::max(sizeof(Shared<P>), kMoreThanHalf) : sizeof(Shared<P>);
  // Sequences of at least half a tile have no more than `usual` tiles.
  constexpr int kMostBlocks = 65535;  // of a grid along y
  const int full = (w.rows + P::kQueries - 1) / P::kQueries;
  const int usual = std::min(2 * full, full + w.max_seqs);
  launch(
      stream, &attention_mma_kernel<P>,
      dim3(static_cast<unsigned>(w.num_heads), static_cast<unsigned>(std::min(usual, kMostBlocks))),
      dim3(P::kThreads), kSharedBytes, w);
}

template <int kDim>
void launch_dim(CudaStream& stream, const AttentionWork& w) {
  if (are_few_tiles(w)) return launch_plan<FewTiles<kDim>>(stream, w);
  launch_plan<ManyTiles<kDim>>(stream, w);
}

}  // namespace

void launch_attention_mma(CudaStream& stream, const AttentionWork& work) {
  const DeviceGuard guard(stream.device_index());
  PaddedHeadDims::choose(work.head_dim, [&](auto dim) { launch_dim<dim>(stream, work); });
}

}  // namespace fovea::cuda
