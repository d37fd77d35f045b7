#pragma once

// The part of the Hopper attention kernel (attention/wgmma.cu) that finds work and loads operands.
//
// The copying group runs ahead of the multiplying ones, across tiles: one warp starts bulk copies
// of keys and values into a ring of stages in shared memory, three warps load the next tile of
// queries by 16-byte copies, in the same layout, and say what they are; packed ones (of E4M3) a
// thread of them loads by one bulk copy. Barriers in shared memory hand stages over and back.

#include "ops/cuda/attention/work.h"
#include "ops/cuda/common/lanes.cuh"
#include "ops/cuda/common/sequences.cuh"
#include "ops/cuda/ptx/ptx.cuh"
#include "ops/cuda/ptx/ring.cuh"

namespace fovea::cuda::hopper_attention {

inline constexpr int kGroupQueries = 64;
inline constexpr int kQueryStages = 2;
inline constexpr int kQueryCopiers = kGroup - kWarp;  // threads that load queries

/// Sizes of a CTA with `kConsumers` groups that multiply heads of `kDtype`.
template <HeadFormat kDtype, int kHeadDim, int kConsumers>
struct Plan {
  static constexpr HeadFormat kFormat = kDtype;
  static constexpr bool kE4M3 = kFormat == HeadFormat::kE4M3;
  using Slabs = fovea::cuda::Slabs<kFormat>;
  static constexpr int kDim = kHeadDim;
  static constexpr int kGroups = kConsumers;
  static constexpr int kQueries = kConsumers * kGroupQueries;
  static constexpr int kThreads = (kConsumers + 1) * kGroup;
  // Registers per thread; the three or four groups of a CTA share 65536.
  static constexpr int kConsumerRegisters = kConsumers == 3 ? 160 : 232;
  static constexpr int kCopyRegisters = kConsumers == 3 ? 32 : 40;
  /// Keys of a step: as many as registers hold scores and weights for, and two sums.
  static constexpr int kKeys = kE4M3             ? (kDim <= 96 ? 128 : 96)
                               : kConsumers == 2 ? 128
                               : kDim <= 64      ? 128
                               : kDim <= 80      ? 112
                               : kDim <= 96      ? 96
                                                 : 80;
  static constexpr int kSteps = (kDim + Slabs::kStepDims - 1) / Slabs::kStepDims;  // in q k^T
  static constexpr int kEightKeysBytes = Slabs::eight_keys_bytes(kDim);
  static constexpr int kKeySlabBytes = Slabs::key_bytes(kDim);  // of queries as well
  static constexpr int kValueSlabBytes = Slabs::value_bytes(kDim);
  static constexpr int kSlabs = kKeys / Slabs::kRows;
  static constexpr int kStages = kE4M3 ? 4 : kDim <= 96 ? 3 : 2;  // as many as are of use, and fit

  /// Whether a turn ends when its WGMMAs have started, not when they have ended. WGMMAs of groups
  /// that overlap end late for both, and their exponentials come together; but where heads are so
  /// long that tensor cores are the limit, they must not wait for the next group to wake.
  static constexpr bool kPassesEarly = kConsumers == 3 && kDim > 96;

  /// Steps whose p v tensor cores add up. Of E4M3 they keep too few bits for more than 512 keys or
  /// so: their errors reach that of the weights at 2,000 keys, and ten times that at 16,000.
  static constexpr int kChunkSteps = 4;

  /// Weights that an instruction multiplies, in four registers, as the second GEMM takes them.
  static constexpr int kWeightKeys = kE4M3 ? 32 : 16;
  static_assert(kKeys % kWeightKeys == 0);

  using Scores = float[kKeys / 8][4];
  using Weights = std::uint32_t[kKeys / kWeightKeys][4];
  using Out = float[kDim / 8 + 1][4];  // the last block: sums of weights
};

/// A tile of queries of one head.
struct Item {
  int first_row;   ///< in the batch
  int lead;        ///< rows of the tile before the sequence begins
  int valid_rows;  ///< up to the end of the sequence from first_row on
  int first_slab;  ///< of the sequence
  int num_keys;    ///< rows of the sequence, and those that its first slab has before it
  int head;
};

template <class P>
struct Shared {
  alignas(128) std::byte queries[kQueryStages][P::kQueries / 8 * P::kEightKeysBytes];
  alignas(128) std::byte keys[P::kStages][P::kSlabs * P::kKeySlabBytes];
  alignas(128) std::byte values[P::kStages][P::kSlabs * P::kValueSlabBytes];
  Item items[kQueryStages];
  // Hand-over between the copying and the multiplying groups, per stage.
  std::uint64_t queries_full[kQueryStages];
  std::uint64_t queries_empty[kQueryStages];
  std::uint64_t keys_full[P::kStages];
  std::uint64_t keys_empty[P::kStages];
  std::uint64_t values_full[P::kStages];
  std::uint64_t values_empty[P::kStages];
  // followed by int[max_seqs + 1], see number_tiles
};

/// first_tiles[s] for s <= num_sequences: tiles of queries before sequence s. Run by one warp.
template <class P>
__device__ inline void number_tiles(const std::int32_t* cu_seqlens, int num_sequences,
                                    int* first_tiles) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  int before = 0;
  for (int base = 0; base < num_sequences; base += kWarp) {
    const int sequence = base + lane;
    const int begin = sequence < num_sequences ? cu_seqlens[sequence] : 0;
    const int rows = sequence < num_sequences ? cu_seqlens[sequence + 1] - begin : 0;
    const int with_lead = rows == 0 ? 0 : P::Slabs::lead(begin) + rows;
    const int tiles = before + sum_up_to_lane((with_lead + P::kQueries - 1) / P::kQueries);
    if (sequence < num_sequences) first_tiles[sequence + 1] = tiles;
    before = __shfl_sync(kAllLanes, tiles, kWarp - 1);
  }
  if (lane == 0) first_tiles[0] = 0;
}

/// The items of one CTA: every gridDim.x-th of all tiles of all heads. Tiles of one head follow
/// each other, so that CTAs at work share its keys and values in L2.
template <class P>
class Items {
 public:
  __device__ Items(const AttentionWork& work, const int* first_tiles, int num_sequences)
      : work_(work),
        first_tiles_(first_tiles),
        num_sequences_(num_sequences),
        num_tiles_(first_tiles[num_sequences]) {}

  /// How many this CTA works on.
  [[nodiscard]] __device__ int count() const {
    const int left = num_tiles_ * work_.num_heads - static_cast<int>(blockIdx.x);
    return left <= 0 ? 0 : (left - 1) / static_cast<int>(gridDim.x) + 1;
  }
  /// Item number `index` of this CTA.
  [[nodiscard]] __device__ Item at(int index) const {
    const int number = static_cast<int>(blockIdx.x) + index * static_cast<int>(gridDim.x);
    const int head = number / num_tiles_;
    const int tile = number - head * num_tiles_;
    int low = 0;
    int high = num_sequences_;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (first_tiles_[middle] <= tile ? low : high) = middle;
    }
    const int begin = work_.cu_seqlens[low];
    const int rows = work_.cu_seqlens[low + 1] - begin;
    const int lead = P::Slabs::lead(begin);
    const int first = (tile - first_tiles_[low]) * P::kQueries - lead;
    return {begin + first, max(-first, 0), rows - first, P::Slabs::first(low, begin), lead + rows,
            head};
  }

 private:
  const AttentionWork& work_;
  const int* first_tiles_;  // of each sequence
  int num_sequences_;
  int num_tiles_;  // of one head
};

/// Fills one stage with the next `slabs` slabs at `from`, for a whole warp; `filler` takes the
/// place of those that the sequence does not have.
template <int kSlabs>
__device__ inline void fill_stage(const std::byte* from, int slabs, const std::byte* filler,
                                  int slab_bytes, std::byte* stage, std::uint64_t& full) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const std::uint32_t barrier = ptx::shared_address(&full);
  const std::uint32_t to = ptx::shared_address(stage);
  const int present = min(slabs, kSlabs);
  if (lane == 0) {
    ptx::barrier_arrive_expecting(barrier, kSlabs * slab_bytes);
    ptx::copy_bulk(to, from, present * slab_bytes, barrier);
  }
  __syncwarp();  // the barrier expects the bytes before they can arrive
  for (int slab = present + lane; slab < kSlabs; slab += kWarp) {
    ptx::copy_bulk(to + slab * slab_bytes, filler, slab_bytes, barrier);
  }
}

/// A slab of zeros.
__device__ const uint4
    kNoValues[Slabs<HeadFormat::kBf16>::value_bytes(kMaxAttentionHeadDim) / sizeof(uint4)] = {};

/// Loads keys and values, step by step. One warp.
template <class P>
__device__ inline void copy_keys_and_values(const AttentionWork& w, const Items<P>& items,
                                            Shared<P>& s) {
  Position<P::kStages> at;
  for (int index = 0; index < items.count(); ++index) {
    const Item item = items.at(index);
    const std::byte* keys = P::Slabs::keys(w, item.head, item.first_slab);
    const std::byte* values = P::Slabs::values(w, item.head, item.first_slab);
    int left = (item.num_keys + P::Slabs::kRows - 1) / P::Slabs::kRows;
    const std::byte* const last_keys = keys + (left - 1) * P::kKeySlabBytes;
    for (; left > 0; left -= P::kSlabs) {
      wait_for(s.keys_empty[at.stage], at.phase ^ 1);
      fill_stage<P::kSlabs>(keys, left, last_keys, P::kKeySlabBytes, s.keys[at.stage],
                            s.keys_full[at.stage]);
      wait_for(s.values_empty[at.stage], at.phase ^ 1);
      fill_stage<P::kSlabs>(values, left, reinterpret_cast<const std::byte*>(kNoValues),
                            P::kValueSlabBytes, s.values[at.stage], s.values_full[at.stage]);
      keys += P::kSlabs * P::kKeySlabBytes;
      values += P::kSlabs * P::kValueSlabBytes;
      at.advance();
    }
  }
}

/// Loads queries from their rows, one tile after the other, in the layout of the keys, and says
/// what they are. kQueryCopiers threads; `thread` counts them.
template <class P>
__device__ inline void copy_query_rows(const AttentionWork& w, const Items<P>& items, int thread,
                                       Shared<P>& s) {
  constexpr int kBlocks = 2 * P::kSteps;  // of 8 dims
  const std::int64_t stride = w.query_stride;
  Position<kQueryStages> at;
  for (int index = 0; index < items.count(); ++index) {
    const Item item = items.at(index);
    const __nv_bfloat16* const rows = reinterpret_cast<const __nv_bfloat16*>(w.qkv) +
                                      item.first_row * stride + item.head * P::kDim;
    wait_for(s.queries_empty[at.stage], at.phase ^ 1);
    const std::uint32_t to = ptx::shared_address(s.queries[at.stage]);
#pragma unroll 1  // the group has few registers
    for (int i = thread; i < P::kQueries * kBlocks; i += kQueryCopiers) {
      const int eight = i / 8 / kBlocks;
      const int block = i / 8 - eight * kBlocks;
      const int row = eight * 8 + i % 8;
      const bool valid = row < item.valid_rows && block < P::kDim / 8;
      ptx::copy_async(to + i * 16, valid ? rows + row * stride + block * 8 : rows, valid);
    }
    const std::uint32_t full = ptx::shared_address(&s.queries_full[at.stage]);
    ptx::barrier_arrive_after_copies(full);
    if (thread == 0) {
      s.items[at.stage] = item;
      ptx::barrier_arrive(full);
    }
    at.advance();
  }
  ptx::commit_copies();
  ptx::wait_copies<0>();
}

/// Loads packed queries likewise: the slabs that the sequence has, by one thread.
template <class P>
__device__ inline void copy_query_slabs(const AttentionWork& w, const Items<P>& items,
                                        Shared<P>& s) {
  constexpr int kRows = P::Slabs::kRows;
  Position<kQueryStages> at;
  for (int index = 0; index < items.count(); ++index) {
    const Item item = items.at(index);
    const int first = item.first_slab + (item.num_keys - item.valid_rows) / kRows;
    const int bytes =
        min((item.valid_rows + kRows - 1) / kRows, P::kQueries / kRows) * P::kKeySlabBytes;
    wait_for(s.queries_empty[at.stage], at.phase ^ 1);
    s.items[at.stage] = item;
    const std::uint32_t full = ptx::shared_address(&s.queries_full[at.stage]);
    ptx::barrier_arrive_expecting(full, bytes);
    ptx::copy_bulk(ptx::shared_address(s.queries[at.stage]), P::Slabs::queries(w, item.head, first),
                   bytes, full);
    at.advance();
  }
}

/// Loads queries. kQueryCopiers threads; `thread` counts them.
template <class P>
__device__ inline void copy_queries(const AttentionWork& w, const Items<P>& items, int thread,
                                    Shared<P>& s) {
  if constexpr (P::kE4M3) {
    if (thread == 0) copy_query_slabs<P>(w, items, s);
  } else {
    copy_query_rows<P>(w, items, thread, s);
  }
}

/// Arrivals that complete a tile of queries.
template <class P>
inline constexpr int kQueryArrivals = P::kE4M3 ? 1 : kQueryCopiers + 1;

}  // namespace fovea::cuda::hopper_attention
