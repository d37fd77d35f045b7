#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

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

/// Heads of packed sequences, and where the Hopper attention kernel reads their keys and values: a
/// GEMM or a kernel of its own stores these there. Sequence s covers rows
/// [cu_seqlens[s], cu_seqlens[s + 1]) for s < *live_seqs (or max_seqs where there is no count).
struct PackedHeads {
  const std::int32_t* cu_seqlens = nullptr;  ///< [max_seqs + 1], on the device
  const std::int32_t* live_seqs = nullptr;   ///< on the device, or null
  int max_seqs = 0;
  int rows = 0;
  int num_heads = 0;
  int head_dim = 0;                ///< a multiple of 8, at most 128
  std::byte* workspace = nullptr;  ///< packed_bytes() for the slabs below, or cuDNN's
  const float* cos = nullptr;      ///< [rows, head_dim / 2], aligned to 16 bytes: who packs rotates
  const float* sin = nullptr;      ///< queries and keys with them, if there are any
};

/// The layout of keys and values in the workspace, and then in shared memory: slabs of eight rows,
/// made of 8 x 8 blocks of 128 contiguous bytes, one after the other along the dims. WGMMA reads
/// such blocks as a transposed operand (q k^T) and as a plain one (p v), for any head dim that is a
/// multiple of 8, and one bulk copy loads any number of slabs.
///
/// Each sequence starts a new slab. The slabs of one head are contiguous: [head][slab][block] of
/// the keys, then of the values.
///
/// The values have one more block, whose first column is 1, so that p v also yields the sums of the
/// weights. In the last slab of a sequence, rows beyond its end repeat the last key and have zeros
/// as values, also in place of the 1. They change neither maximum nor sum nor result, so scores
/// need no mask.
inline constexpr int kSlabRows = 8;
inline constexpr int kSlabBlockBytes = 128;

/// Keys are padded with zeros to whole steps of 16 dims.
[[nodiscard]] constexpr int key_slab_bytes(int head_dim) {
  return (head_dim + 15) / 16 * 2 * kSlabBlockBytes;
}
[[nodiscard]] constexpr int value_slab_bytes(int head_dim) {
  return (head_dim / 8 + 1) * kSlabBlockBytes;
}

/// Number of a sequence's first slab. It depends only on where the sequence begins, and leaves
/// enough slabs to the sequences before: a sequence of n rows has ceil(n / 8) of them, which is at
/// most the difference between the first slabs of its successor and its own.
[[nodiscard]] constexpr int first_slab(int sequence, int first_row) {
  return first_row / kSlabRows + sequence;
}
/// One more than the largest number of a slab that the sequences of a batch can have.
[[nodiscard]] constexpr int max_slabs(int rows, int max_seqs) {
  return rows / kSlabRows + max_seqs;
}
/// Address of slab `slab` of the keys, or values, of a head.
[[nodiscard]] constexpr std::byte* packed_keys(const PackedHeads& heads, int head, int slab) {
  const std::int64_t number = std::int64_t{head} * max_slabs(heads.rows, heads.max_seqs) + slab;
  return heads.workspace + number * key_slab_bytes(heads.head_dim);
}
[[nodiscard]] constexpr std::byte* packed_values(const PackedHeads& heads, int head, int slab) {
  const std::int64_t number = std::int64_t{head} * max_slabs(heads.rows, heads.max_seqs) + slab;
  return packed_keys(heads, heads.num_heads, 0) + number * value_slab_bytes(heads.head_dim);
}

/// Bytes of the workspace.
[[nodiscard]] inline std::size_t packed_bytes(const PackedHeads& heads) {
  return static_cast<std::size_t>(max_slabs(heads.rows, heads.max_seqs)) *
         static_cast<std::size_t>(heads.num_heads) *
         static_cast<std::size_t>(key_slab_bytes(heads.head_dim) +
                                  value_slab_bytes(heads.head_dim));
}

}  // namespace fovea::cuda
