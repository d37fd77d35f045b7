#pragma once

// What becomes of the sums of a GEMM whose columns are queries, keys and values: queries and
// keys are rotated in registers, where there are angles; then rows leave for where the Hopper
// attention kernel reads them, queries for rows of the output, keys and values for their slabs
// (common/packed_heads.h). That spares attention a kernel that reads and writes all three once
// more.
//
// What did not help: storing keys and values from registers in words, although eight rows of eight
// columns are spread over a warp as a block of a slab; groups that take turns, whose registers
// cannot hold angles beside the sums of twice as many rows, so that each waits for them; weights
// that TMA reads from both halves of a head in turn, so that pairs to rotate meet in one thread
// without shuffles, for groups that share a tile or take turns with angles in shared memory (H200,
// with attention over 8 x 1024 rows 228 us in a loop in either case, over 1 x 1024 rows 33 and 32).

#include "ops/cuda/common/bf16.cuh"
#include "ops/cuda/common/packed_heads.h"
#include "ops/cuda/common/sequences.cuh"
#include "ops/cuda/gemm/hopper/plan.cuh"
#include "ops/cuda/ptx/ptx.cuh"
#include "ops/cuda/ptx/tma.cuh"
#include "ops/cuda/rowwise/quantize.cuh"
#include "ops/cuda/rowwise/rotate.cuh"

namespace fovea::cuda::gemm {

/// Rotary angles of 16 rows of a warp, as WGMMA spreads rows of a head over it: lane l
/// has rows l / 4 and l / 4 + 8, and of each block of eight columns 2 (l % 4) and the next.
template <int kDim>
class HeadAngles {
 public:
  /// Asks for the angles. `row` is the first; rows from `live` on have none.
  __device__ void fetch(const PackedHeads& heads, int row, int live) {
#pragma unroll
    for (int n = 0; n < kLowBlocks; ++n) {
      const int j = n * 8 + ptx::lane() % 4 * 2;
#pragma unroll
      for (int i = 0; i < 4; i += 2) {
        const int r = row + ptx::lane() / 4 + 4 * i;
        const bool exists = r < live && j < kHalf;
        const std::int64_t at = std::int64_t{r} * kHalf + j;
        const float2 c = exists ? *reinterpret_cast<const float2*>(heads.cos + at) : float2{};
        const float2 s = exists ? *reinterpret_cast<const float2*>(heads.sin + at) : float2{};
        cosine_[n][i] = c.x, cosine_[n][i + 1] = c.y;
        sine_[n][i] = s.x, sine_[n][i + 1] = s.y;
      }
    }
  }

  /// Rounds the sums of a head to bf16, as rope() reads them, and rotates them.
  __device__ void rotate(float (*head)[4]) const {
#pragma unroll
    for (int n = 0; n < kBlocks; ++n) {
#pragma unroll
      for (int i = 0; i < 4; i += 2) {
        const float2 rounded = unpack_bf16(pack_bf16(head[n][i], head[n][i + 1]));
        head[n][i] = rounded.x, head[n][i + 1] = rounded.y;
      }
    }
#pragma unroll
    for (int n = 0; n < kLowBlocks; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if constexpr (kHalf % 8 == 0) {
          rotate_pair(n, i, head[n][i], head[n + kLowBlocks][i]);
        } else {
          rotate_across_lanes(n, i, head);
        }
      }
    }
  }

 private:
  static constexpr int kHalf = kDim / 2;
  static constexpr int kBlocks = kDim / 8;
  static constexpr int kLowBlocks = (kHalf + 7) / 8;  // with columns of the first half

  __device__ void rotate_pair(int n, int i, float& low, float& high) const {
    const float x = low;
    low = rotated(x, high, cosine_[n][i], sine_[n][i], false);
    high = rotated(high, x, cosine_[n][i], sine_[n][i], true);
  }

  /// The halves meet within a block: the partner of a column is with the lane two further or two
  /// before, which lends it. Blocks in ascending order.
  __device__ void rotate_across_lanes(int n, int i, float (*head)[4]) const {
    const bool is_low_in_middle = ptx::lane() % 4 < 2;  // in the block where the halves meet
    const bool is_last = n + 1 == kLowBlocks;
    float& later = head[is_last ? n : n + kLowBlocks][i];
    float& earlier = head[n + kLowBlocks - 1][i];
    float low = head[n][i];
    float high = __shfl_xor_sync(kAllLanes, is_low_in_middle ? later : earlier, 2);
    rotate_pair(n, i, low, high);
    high = __shfl_xor_sync(kAllLanes, high, 2);
    if (!is_last || is_low_in_middle) head[n][i] = low;
    if (!is_low_in_middle) earlier = high;
    if (!is_last && is_low_in_middle) later = high;
  }

  float cosine_[kLowBlocks][4];
  float sine_[kLowBlocks][4];
};

/// Eight columns of a row of a head in the buffer of a warp.
template <class P>
__device__ const uint4& piece_of_head(const std::byte* buffer, int row, int number) {
  return *reinterpret_cast<const uint4*>(buffer + row * P::kChunkStride * 2 + number * 16);
}

/// The last sequence that begins at `row` or before, or the first.
__device__ inline int sequence_at(const PackedHeads& heads, int num_sequences, int row) {
  int sequence = 0;
  for (int end = num_sequences; end - sequence > 1;) {
    const int middle = (sequence + end) / 2;
    (heads.cu_seqlens[middle] <= row ? sequence : end) = middle;
  }
  return sequence;
}

/// A head among those of the member of a team that works on it.
struct MembersHead {
  int member;
  int head;
};

/// @param head among those of the whole team.
__device__ inline MembersHead find_head(const PackedHeads& heads, int head) {
  const int member = heads.team.size == 1 ? 0 : head / heads.num_heads;
  return {member, head - member * heads.num_heads};
}

/// Keys and values of the 16 rows that a warp has of a tile, on their way to slabs of bf16.
template <class P>
class Bf16Store {
 public:
  /// Finds where the warp's rows, which begin at `row` of the batch, will go.
  __device__ void prepare(const PackedHeads& heads, int row, int live) {
    const int mine = row + ptx::lane() % kWarpRows;
    if (mine < live) find(heads, mine);
  }
  __device__ void store_keys(const PackedHeads& heads, MembersHead of,
                             const std::byte* buffer) const {
    store<false>(heads.team.at(of.member, Layout::keys(heads, of.head, 0)), buffer);
  }
  __device__ void store_values(const PackedHeads& heads, MembersHead of,
                               const std::byte* buffer) const {
    store<true>(heads.team.at(of.member, Layout::values(heads, of.head, 0)), buffer);
  }

 private:
  using Layout = Slabs<HeadFormat::kBf16>;
  static constexpr int kDim = P::kHeadDim;
  static constexpr int kPieces = kDim / 8;  // of 16 bytes, in a row

  __device__ void find(const PackedHeads& heads, int row) {
    const int num_sequences = live_sequences(heads);
    const int sequence = sequence_at(heads, num_sequences, row);
    const int begin = heads.cu_seqlens[sequence];
    const int end = num_sequences > 0 ? heads.cu_seqlens[sequence + 1] : begin;
    if (row < begin || row >= end) return;
    number_ = Layout::first(sequence, begin) * Layout::kRows + row - begin;
    repeats_ = row + 1 == end ? Layout::kRows - 1 - number_ % Layout::kRows : 0;
  }

  /// Eight lanes take the rows of a block of eight columns, which are neighbours in a slab.
  template <bool kAreValues>
  __device__ void store(std::byte* slabs, const std::byte* buffer) const {
    constexpr int kSlabRows = Layout::kRows;
    constexpr int kSlabBytes = kAreValues ? Layout::value_bytes(kDim) : Layout::key_bytes(kDim);
    constexpr uint4 kBehindHead{kAreValues ? kBf16One : 0, 0, 0, 0};
#pragma unroll
    for (int first = 0; first < kWarpRows; first += kSlabRows) {
      const int row = first + ptx::lane() % kSlabRows;
      const int number = __shfl_sync(kAllLanes, number_, row);
      const int repeats = __shfl_sync(kAllLanes, repeats_, row);
      if (number < 0) continue;
      auto* const slab =
          reinterpret_cast<uint4*>(slabs + std::int64_t{number / kSlabRows} * kSlabBytes);
#pragma unroll
      for (int block = ptx::lane() / kSlabRows; block < kSlabBytes / Layout::kBlockBytes;
           block += kWarp / kSlabRows) {
        const uint4 values = block < kPieces ? piece_of_head<P>(buffer, row, block) : kBehindHead;
        uint4* const to = slab + block * kSlabRows + number % kSlabRows;
        *to = values;
#pragma unroll 1
        for (int i = 1; i <= repeats; ++i) to[i] = kAreValues ? uint4{} : values;
      }
    }
  }

  int number_ = -1;  // of row lane % 16, counting all rows of slabs; -1: no sequence covers it
  int repeats_ = 0;  // rows behind it that its slab has and its sequence, whose last it is, has not
};

/// Heads of the 16 rows that a warp has of a tile, rounded to bf16, on their way to slabs of E4M3:
/// a slab for each sequence that has some of them.
template <class P>
class E4M3Store {
 public:
  /// Finds the first sequence that the warp's rows, which begin at `row` of the batch, may be of;
  /// from row `live` on there is none.
  __device__ void prepare(const PackedHeads& heads, int row, int live) {
    row_ = row;
    num_sequences_ = row < live ? live_sequences(heads) : 0;
    sequence_ = sequence_at(heads, num_sequences_, row);
    begin_ = heads.cu_seqlens[sequence_];
    end_ = num_sequences_ > 0 ? heads.cu_seqlens[sequence_ + 1] : begin_;
  }
  __device__ void store_queries(const PackedHeads& heads, MembersHead of,
                                const std::byte* buffer) const {
    store<false>(heads, heads.team.at(of.member, Layout::queries(heads, of.head, 0)), buffer);
  }
  __device__ void store_keys(const PackedHeads& heads, MembersHead of,
                             const std::byte* buffer) const {
    store<true>(heads, heads.team.at(of.member, Layout::keys(heads, of.head, 0)), buffer);
  }
  __device__ void store_values(const PackedHeads& heads, MembersHead of,
                               const std::byte* buffer) const {
    for_each_slab(heads, [&](int number, int from, int to) {
      std::byte* const slab = heads.team.at(of.member, Layout::values(heads, of.head, number));
#pragma unroll
      for (int col = ptx::lane(); col < (kPieces + 1) * 8; col += kWarp) {
        *reinterpret_cast<uint4*>(slab + col * kWarpRows) = column(buffer, col, from, to);
      }
    });
  }

 private:
  using Layout = Slabs<HeadFormat::kE4M3>;
  static_assert(Layout::kRows == kWarpRows, "a warp's rows are those of a slab");
  static constexpr int kDim = P::kHeadDim;
  static constexpr int kPieces = kDim / 8;  // of eight columns

  /// Calls write(slab, from, to) for each sequence of which rows [from, to) of the warp are.
  template <class Write>
  __device__ void for_each_slab(const PackedHeads& heads, const Write& write) const {
    int begin = begin_;
    int end = end_;
    for (int sequence = sequence_;;) {
      const int from = max(begin - row_, 0);
      const int to = min(end - row_, kWarpRows);
      if (from < to) write(Layout::first(sequence, row_), from, to);
      if (++sequence >= num_sequences_ || end >= row_ + kWarpRows) return;
      begin = end;
      end = heads.cu_seqlens[sequence + 1];
    }
  }

  /// Queries or keys: 16 lanes take the rows of a block of 16 columns.
  template <bool kAreKeys>
  __device__ void store(const PackedHeads& heads, std::byte* slabs, const std::byte* buffer) const {
    constexpr int kBlocks = Layout::eight_keys_bytes(kDim) / Layout::kBlockBytes;
    const int row = ptx::lane() % kWarpRows;
    const int place = kAreKeys ? Layout::row_of_key(row) : row;
    for_each_slab(heads, [&](int number, int from, int to) {
      std::byte* const slab = slabs + std::int64_t{number} * Layout::key_bytes(kDim);
      const int source = min(max(row, from), to - 1);
#pragma unroll
      for (int block = ptx::lane() / kWarpRows; block < kBlocks; block += kWarp / kWarpRows) {
        const auto half = [&](int i) {
          return i < kPieces ? eight_e4m3(piece_of_head<P>(buffer, source, i)) : uint2{};
        };
        const uint2 low = half(2 * block);
        const uint2 high = half(2 * block + 1);
        *reinterpret_cast<uint4*>(slab + Layout::key_offset(kDim, block, place)) = {low.x, low.y,
                                                                                    high.x, high.y};
      }
    });
  }

  /// A column of values, or of what stands behind them, with zeros around rows [from, to).
  __device__ static uint4 column(const std::byte* buffer, int col, int from, int to) {
    return sixteen_e4m3([&](int row) {
      if (col > kDim || row < from || row >= to) return 0.0f;
      return col == kDim ? 1.0f
                         : __bfloat162float(*reinterpret_cast<const __nv_bfloat16*>(
                               buffer + (row * P::kChunkStride + col) * 2));
    });
  }

  int row_ = 0;
  int num_sequences_ = 0;
  int sequence_ = 0;
  int begin_ = 0;
  int end_ = 0;
};

/// Heads of the 16 rows that a warp has of a tile, on their way out: those of a GEMM of E4M3 in
/// E4M3.
template <class P>
class HeadStore {
 public:
  __device__ explicit HeadStore(const HopperGemmWork& w) : w_(w), heads_(w.heads) {}

  /// The warp's rows begin at `row`, the columns of the tile at `col`. Finds where they will go.
  __device__ void prepare(int row, int col, int live) {
    row_ = row;
    live_ = live;
    first_head_ = col / kDim;
    const int first_row = heads_.team.first_row();
    if constexpr (P::kFp8) {
      slabs_.prepare(heads_, first_row + row, first_row + live);
    } else {
      slabs_ = {};
      if (first_head_ + kHeads > num_heads()) {
        slabs_.prepare(heads_, first_row + row, first_row + live);
      }
    }
  }
  /// Asks for the angles, which are needed when the sums are there.
  __device__ void begin() {
    if (rotates()) angles_.fetch(heads_, row_, live_);
  }

  __device__ void rotate(typename P::Sums& sums) const {
    if (!rotates()) return;
#pragma unroll
    for (int head = 0; head < kHeads; ++head) {
      if (first_head_ + head < 2 * num_heads()) angles_.rotate(&sums[0][head * kPieces]);
    }
  }

  /// Stores head number `head` of the tile from the warp's buffer.
  __device__ void store_head(int head, const std::byte* buffer) const {
    const int number = first_head_ + head;
    if (number < num_heads()) {
      store_queries(find_head(heads_, number), buffer);
    } else if (number < 2 * num_heads()) {
      slabs_.store_keys(heads_, find_head(heads_, number - num_heads()), buffer);
    } else if (number < 3 * num_heads()) {
      slabs_.store_values(heads_, find_head(heads_, number - 2 * num_heads()), buffer);
    }
  }

 private:
  static constexpr int kDim = P::kHeadDim;
  static constexpr int kHeads = P::kCols / kDim;  // of a tile
  static constexpr int kPieces = kDim / 8;        // of 16 bytes, in a row
  static_assert(P::kUnits == 1, "angles of more rows would not fit into registers beside the sums");

  /// Of the whole team.
  [[nodiscard]] __device__ int num_heads() const { return heads_.num_heads * heads_.team.size; }
  [[nodiscard]] __device__ bool rotates() const {
    return heads_.cos != nullptr && first_head_ < 2 * num_heads();
  }

  __device__ void store_queries(MembersHead of, const std::byte* buffer) const {
    if constexpr (P::kFp8) {
      slabs_.store_queries(heads_, of, buffer);
    } else {
      std::byte* const rows =
          heads_.team.at(of.member, w_.out) +
          (std::int64_t{heads_.team.first_row() + row_} * heads_.query_stride + of.head * kDim) * 2;
#pragma unroll
      for (int i = ptx::lane(); i < kWarpRows * kPieces; i += kWarp) {
        const int row = i / kPieces;
        if (row_ + row >= live_) continue;
        std::byte* const to = rows + std::int64_t{row} * heads_.query_stride * 2;
        reinterpret_cast<uint4*>(to)[i % kPieces] = piece_of_head<P>(buffer, row, i % kPieces);
      }
    }
  }

  const HopperGemmWork& w_;
  const PackedHeads& heads_;
  int row_ = 0;
  int live_ = 0;
  int first_head_ = 0;  // of the tile: queries, then keys, then values
  std::conditional_t<P::kFp8, E4M3Store<P>, Bf16Store<P>> slabs_;
  HeadAngles<kDim> angles_;
};

/// In its place where columns are no heads.
struct NoHeads {
  __device__ explicit NoHeads(const HopperGemmWork& /*w*/) {}
};

}  // namespace fovea::cuda::gemm
