#pragma once

// A tile of the portable attention kernel (attention/mma.cu) in shared memory, and its operands on
// the way to the tensor cores.

#include <climits>

#include "ops/cuda/attention/work.h"
#include "ops/cuda/common/bf16.cuh"
#include "ops/cuda/common/lanes.cuh"
#include "ops/cuda/ptx/ptx.cuh"

namespace fovea::cuda::attention_mma {

inline constexpr int kWarpQueries = 16;
inline constexpr int kStages = 2;  // of each group

/// How a CTA works: `kSplitCount` groups of `kWarpCount` warps share the keys of a tile,
/// `kStepKeys` at a time. kBlockCount CTAs run on one SM.
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

  /// The sums of a group, in the memory of its stages.
  [[nodiscard]] __device__ Partial<P>& partial(int group) {
    static_assert(sizeof(Partial<P>) <= sizeof(stages[0]));
    return *reinterpret_cast<Partial<P>*>(stages[group]);
  }
};

/// Copies `kRows` rows of a head to shared memory with kThreads threads, in pieces of 16 bytes. The
/// addresses of a thread's pieces are computed once, before the kernel waits for its predecessor.
template <class P, int kRows, int kThreads>
class RowCopier {
 public:
  __device__ RowCopier(int stride, int head_dim) {
#pragma unroll
    for (int t = 0; t < kTasks; ++t) {
      const int i = static_cast<int>(threadIdx.x) % kThreads + t * kThreads;
      const int row = i / P::kPieces;
      const int dim = i % P::kPieces * 8;
      // A piece beyond the head has no row, so it always becomes zeros.
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

template <class P>
using KeyCopier = RowCopier<P, P::kKeys, P::kGroupThreads>;

/// Starts copying keys and values of one step. @param keys the first ones of a head and sequence.
template <class P>
__device__ void fetch_keys(const KeyCopier<P>& copier, const __nv_bfloat16* keys, int width,
                           int num_keys, int step, Stage<P>& stage) {
  const int first = step * P::kKeys;
  const __nv_bfloat16* const from = keys + std::int64_t{first} * (3 * width);
  copier.start(from, num_keys - first, stage.keys);
  copier.start(from + width, num_keys - first, stage.values);
}

/// The 16 queries of a warp as an operand of the tensor cores.
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

/// Whether no query of a warp sees a key of a step: none where its first key is hidden from the
/// last query. Otherwise each of them sees the first key, because steps and warps begin at
/// multiples of kWarpQueries. @param query number of the first query in its sequence, @param key
/// that of the first key of the step.
template <class P>
__device__ bool hides_step(int prefix, int query, int key) {
  static_assert(P::kKeys % kWarpQueries == 0);
  return key >= prefix && key >= query + kWarpQueries;
}

/// Excludes keys at or beyond `prefix` from the softmax of the queries before them, in a step that
/// is not hidden. Parameters as of hides_step.
template <class P>
__device__ void hide_later_keys(int prefix, int query, int key, typename P::Scores& scores) {
  const int last_key = key + P::kKeys - 1;
  if (last_key < prefix || last_key <= query) return;  // every query sees all of them
  const int lane = lane_index();
#pragma unroll
  for (int n = 0; n < P::kKeys / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int this_key = key + n * 8 + lane % 4 * 2 + i % 2;
      const int this_query = query + lane / 4 + i / 2 * 8;
      if (this_key >= prefix && this_key > this_query) scores[n][i] = -INFINITY;
    }
  }
}

}  // namespace fovea::cuda::attention_mma
