#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "fovea/tower/device/team.h"

namespace fovea::cuda {

/// The head dims that a kernel is compiled for, in ascending order.
template <int... kDims>
struct HeadDims {
  [[nodiscard]] static constexpr bool contains(int head_dim) {
    return ((head_dim == kDims) || ...);
  }

  /// Calls body(std::integral_constant<int, kDim>{}) with the first kDim that is not smaller than
  /// `head_dim`; there is one.
  template <class Body>
  static void choose(int head_dim, const Body& body) {
    (void)((head_dim <= kDims && (body(std::integral_constant<int, kDims>{}), true)) || ...);
  }
};

/// Those of kernels that pad heads with zeros to whole steps of 16 dims.
using PaddedHeadDims = HeadDims<16, 32, 48, 64, 80, 96, 112, 128>;

/// The dtype of heads as the Hopper attention kernels multiply them.
enum class HeadFormat : std::uint8_t { kBf16, kE4M3 };

/// Where members of a team (fovea/tower/device/team.h) have what this GPU has, and its part of the
/// rows. A GPU alone is a team of one.
struct TeamPlaces {
  int size = 1;
  int rank = 0;
  int rows = 0;                                          ///< of each member
  std::ptrdiff_t distance[TeamFlags::kMaxMembers] = {};  ///< Team::distance

  /// Row of the batch at which those of this GPU begin.
  [[nodiscard]] constexpr int first_row() const { return rank * rows; }
  template <class T>
  [[nodiscard]] constexpr T* at(int member, T* own) const {
    return reinterpret_cast<T*>(reinterpret_cast<char*>(own) + distance[member]);
  }
};

/// Heads of packed sequences, and where the Hopper attention kernels read them: a GEMM or a kernel
/// of its own stores keys and values there, and queries of E4M3. Sequence s covers rows
/// [cu_seqlens[s], cu_seqlens[s + 1]) for s < *live_seqs (or max_seqs where there is no count).
struct PackedHeads {
  const std::int32_t* cu_seqlens = nullptr;  ///< [max_seqs + 1], on the device
  const std::int32_t* live_seqs = nullptr;   ///< on the device, or null
  int max_seqs = 0;
  int rows = 0;          ///< of a team: of all its members
  int num_heads = 0;     ///< of a team: of each member
  int head_dim = 0;      ///< a multiple of 8, at most 128
  int query_stride = 0;  ///< elements from row to row of queries that stay rows
  HeadFormat format = HeadFormat::kBf16;
  std::byte* workspace = nullptr;  ///< packed_bytes() for the slabs below, or cuDNN's
  const float* cos = nullptr;      ///< [rows, head_dim / 2], aligned to 16 bytes: who packs rotates
  const float* sin = nullptr;      ///< queries and keys with them, if there are any; of a team:
                                   ///< those of the rows of this GPU
  TeamPlaces team = {};
};

/// The layout of heads in the workspace, and then in shared memory: slabs of neighbouring rows of a
/// sequence, made of blocks of 128 contiguous bytes, eight rows of 16 bytes, as WGMMA reads them.
/// One bulk copy loads any number of slabs.
///
/// No slab holds rows of two sequences. The slabs of one head are contiguous: [head][slab] of the
/// keys, then of the values; in front of both those of the queries, where they are packed.
///
///            bf16: 8 rows, counted from        E4M3: 16 rows, counted from the
///            the start of a sequence           start of the batch
///   keys     [dims / 8] 8 keys x 8 dims        [2][dims / 16] 8 keys x 16 dims
///   values   [dims / 8] 8 keys x 8 dims        [dims / 8] 8 dims x 16 keys
///   queries  stay rows                         as keys
///
/// WGMMA transposes values of bf16 but not bytes, so those of E4M3 are stored transposed: a column
/// of a slab is the 16 rows that a warp of a GEMM has. Keys of E4M3 lie in another order in their
/// slab (row_of_key): so the scores that a thread has are the weights that it multiplies.
///
/// The values have one more block, whose first column is 1, so that p v also yields the sums of the
/// weights. In the first and the last slab of a sequence, rows that are not of it repeat the key
/// next to them and have zeros as values, also in place of the 1. They change neither maximum nor
/// sum nor result, so scores need no mask.
template <HeadFormat kFormat>
struct Slabs {
  static constexpr bool kE4M3 = kFormat == HeadFormat::kE4M3;
  static constexpr int kBlockBytes = 128;
  static constexpr int kRows = kE4M3 ? 16 : 8;
  static constexpr int kBlockDims = kE4M3 ? 16 : 8;  ///< of a key in a block
  static constexpr int kStepDims = 2 * kBlockDims;   ///< that an instruction multiplies

  /// Bytes of eight keys, or queries, which are padded with zeros to whole steps.
  [[nodiscard]] static constexpr int eight_keys_bytes(int head_dim) {
    return (head_dim + kStepDims - 1) / kStepDims * 2 * kBlockBytes;
  }
  [[nodiscard]] static constexpr int key_bytes(int head_dim) {
    return kRows / 8 * eight_keys_bytes(head_dim);
  }
  [[nodiscard]] static constexpr int value_bytes(int head_dim) {
    return (head_dim / 8 + 1) * kBlockBytes;
  }
  /// Where key `key` of a slab lies among its rows.
  [[nodiscard]] static constexpr int row_of_key(int key) {
    return kE4M3 ? key / 4 * 2 + key % 2 + key % 4 / 2 * 8 : key;
  }
  /// Offset of a row of a block of dims in a slab of keys or queries.
  [[nodiscard]] static constexpr int key_offset(int head_dim, int block, int row) {
    return row / 8 * eight_keys_bytes(head_dim) + block * kBlockBytes + row % 8 * 16;
  }

  /// Rows that the first slab of a sequence has in front of it.
  [[nodiscard]] static constexpr int lead(int first_row) { return kE4M3 ? first_row % kRows : 0; }
  /// Number of a sequence's first slab. It depends only on where the sequence begins, and leaves
  /// enough slabs to the sequences before: one of n rows has ceil((lead + n) / kRows) of them,
  /// which is at most the difference between the first slabs of its successor and its own.
  [[nodiscard]] static constexpr int first(int sequence, int first_row) {
    return first_row / kRows + sequence;
  }
  /// One more than the largest number of a slab that the sequences of a batch can have.
  [[nodiscard]] static constexpr int most(const PackedHeads& heads) {
    return heads.rows / kRows + heads.max_seqs;
  }
  /// Address of slab `slab` of the queries (of E4M3), keys, or values of a head.
  [[nodiscard]] static constexpr std::byte* queries(const PackedHeads& h, int head, int slab) {
    return h.workspace + number(h, head, slab) * key_bytes(h.head_dim);
  }
  [[nodiscard]] static constexpr std::byte* keys(const PackedHeads& h, int head, int slab) {
    return queries(h, head + (kE4M3 ? h.num_heads : 0), slab);
  }
  [[nodiscard]] static constexpr std::byte* values(const PackedHeads& h, int head, int slab) {
    return keys(h, h.num_heads, 0) + number(h, head, slab) * value_bytes(h.head_dim);
  }
  /// Bytes of the workspace.
  [[nodiscard]] static constexpr std::size_t bytes(const PackedHeads& h) {
    return static_cast<std::size_t>(number(h, h.num_heads, 0)) *
           static_cast<std::size_t>((kE4M3 ? 2 : 1) * key_bytes(h.head_dim) +
                                    value_bytes(h.head_dim));
  }

 private:
  [[nodiscard]] static constexpr std::int64_t number(const PackedHeads& h, int head, int slab) {
    return std::int64_t{head} * most(h) + slab;
  }
};

/// Bytes of the workspace.
[[nodiscard]] inline std::size_t packed_bytes(const PackedHeads& heads) {
  return heads.format == HeadFormat::kE4M3 ? Slabs<HeadFormat::kE4M3>::bytes(heads)
                                           : Slabs<HeadFormat::kBf16>::bytes(heads);
}

}  // namespace fovea::cuda
