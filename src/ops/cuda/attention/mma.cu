// Softmax attention over packed sequences with the tensor-core instructions of one warp.
//
// A CTA computes 64 query rows of one head; a warp owns 16 of them, so the running maximum,
// sum and output of a row live in the four lanes that hold its scores. Keys and values come in
// blocks of 64 or 32, counted from the start of the sequence, double-buffered in shared memory;
// rows beyond the sequence are read as zeros and their scores masked, as are keys that a query does
// not see. Scores never leave registers:
//   m' = max(m, max_j s_j),  p_j = 2^((s_j - m') scale log2 e),
//   l' = l 2^((m - m') scale log2 e) + sum_j p_j,  o' = o 2^((m - m') scale log2 e) + sum_j p_j v_j
// and the result is o / l. Statistics and sums are f32; p is rounded to bf16 for the second
// product, and the result once. Head dims are padded to a multiple of 16 with zeros in shared
// memory. Sums of a tile pass through shared memory, so that rows are written in pieces of 16
// bytes. Source: Dao, "FlashAttention-2", arXiv:2307.08691, algorithm 1.
//
// With few tiles the time of one tile matters. Then several groups of warps share the keys of a
// tile, each with sums of its own, and the partial sums are combined at the end in the order of the
// groups: with m = max_g m_g, o = sum_g o_g 2^((m_g - m) scale log2 e), l likewise.
//
// CTAs find their tiles by scanning cu_seqlens; each takes every gridDim.y-th tile of a head. (A
// graph is captured for many more sequences than most batches have, so one CTA per possible tile
// would be wasteful.)
#include <algorithm>

#include "ops/cuda/attention/mma_tile.cuh"
#include "ops/cuda/attention/softmax_mma.cuh"
#include "ops/cuda/common/bf16.cuh"
#include "ops/cuda/common/lanes.cuh"
#include "ops/cuda/common/launch.cuh"
#include "ops/cuda/common/packed_heads.h"
#include "ops/cuda/common/sequences.cuh"
#include "ops/cuda/ptx/ptx.cuh"

namespace fovea::cuda {

namespace attention_mma {

namespace {

/// For many tiles: as many CTAs as registers allow.
constexpr int blocks_for(int dim) { return dim <= 80 ? 4 : dim <= 96 ? 3 : 2; }
template <int kDim>
using ManyTiles = Plan<kDim, 4, 32, 1, blocks_for(kDim)>;
/// For few tiles: one CTA per SM. Two would fit, but the hardware tends to place CTAs that wait
/// for their predecessor on the same SM, which would leave others idle.
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

/// Keys of a step, and the queries of a warp, as numbers of rows of their sequence.
struct StepRows {
  int key;    ///< first one
  int valid;  ///< keys that exist, where this is the last step of the sequence
  bool is_last;
  int query;  ///< first one
  int prefix;
};

/// One step of one warp. The last one of a sequence has `valid` keys, the others are full. A step
/// whose keys are hidden from all queries of the warp changes nothing.
template <class P>
__device__ void attend(float factor, const std::uint32_t (&q)[P::kDim / 16][4],
                       const Stage<P>& stage, const StepRows& rows, SoftmaxSums<P::kDim>& acc) {
  if (hides_step<P>(rows.prefix, rows.query, rows.key)) return;
  typename P::Scores scores = {};
  multiply_keys<P>(q, stage, scores);
  hide_later_keys<P>(rows.prefix, rows.query, rows.key, scores);
  if (rows.is_last) mask_scores<P>(rows.valid, scores);
  update_softmax(factor, scores, acc);
  multiply_values(scores, stage.values, acc);
}

/// Stores the sums of a warp for join_partials.
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

/// Combines the sums of the groups and stores the result, 16 bytes at a time; `out` points to the
/// first row and head of the tile. A group without keys has a maximum of -infinity and weight 0.
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
  const KeyCopier<P> copy_keys(stride, w.head_dim);
  const float factor = w.scale * ptx::kLog2E;
  const int head = static_cast<int>(blockIdx.x);
  let_successor_start();
  const int num_sequences = live_sequences(w);
  QueryTile tile;
  const auto find = [&](int number) {
    return find_tile(w.cu_seqlens, num_sequences, P::kQueries, number, tile);
  };
  int number = static_cast<int>(blockIdx.y);
  bool found = find(number);
  wait_for_predecessor();
  for (; found; found = find(number += static_cast<int>(gridDim.y))) {
    const __nv_bfloat16* const sequence = reinterpret_cast<const __nv_bfloat16*>(w.qkv) +
                                          std::int64_t{tile.sequence_begin} * stride +
                                          head * w.head_dim;
    const int num_steps = (tile.sequence_rows + P::kKeys - 1) / P::kKeys;
    const auto fetch_step = [&](int step, Stage<P>& stage) {
      if (step < num_steps) {
        fetch_keys<P>(copy_keys, sequence + width, width, tile.sequence_rows, step, stage);
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
        const StepRows rows{.key = step * P::kKeys,
                            .valid = tile.sequence_rows - step * P::kKeys,
                            .is_last = step + 1 == num_steps,
                            .query = tile.first + warp * kWarpQueries,
                            .prefix = w.prefix_rows};
        attend<P>(factor, q, stage, rows, acc);
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
  constexpr std::size_t kMoreThanHalf = 114 << 10;  // of the largest SM's 228 KB, 1 KB per CTA
  const std::size_t shared_bytes =
      P::kBlocks == 1
          ? std::max(sizeof(Shared<P>), std::min(kMoreThanHalf, stream.traits().shared_bytes))
          : sizeof(Shared<P>);
  // Sequences of at least half a tile have no more than `usual` tiles.
  constexpr int kMostBlocks = 65535;  // of a grid along y
  const int full = (w.rows + P::kQueries - 1) / P::kQueries;
  const int usual = std::min(2 * full, full + w.max_seqs);
  launch(
      stream, &attention_mma_kernel<P>,
      dim3(static_cast<unsigned>(w.num_heads), static_cast<unsigned>(std::min(usual, kMostBlocks))),
      dim3(P::kThreads), shared_bytes, w);
}

template <int kDim>
void launch_dim(CudaStream& stream, const AttentionWork& w) {
  static_assert(sizeof(Shared<ManyTiles<kDim>>) <= kPortableSharedBytes);
  const bool fits = sizeof(Shared<FewTiles<kDim>>) <= stream.traits().shared_bytes;
  if (fits && are_few_tiles(w)) return launch_plan<FewTiles<kDim>>(stream, w);
  launch_plan<ManyTiles<kDim>>(stream, w);
}

}  // namespace

}  // namespace attention_mma

void launch_attention_mma(CudaStream& stream, const AttentionWork& work) {
  const DeviceGuard guard(stream.device_index());
  PaddedHeadDims::choose(work.head_dim,
                         [&](auto dim) { attention_mma::launch_dim<dim>(stream, work); });
}

}  // namespace fovea::cuda
