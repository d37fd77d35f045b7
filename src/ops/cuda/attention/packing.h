#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/cuda/attention/work.h"

namespace fovea::cuda {

/// The layout of keys and values in the workspace of the Hopper kernel, and then in shared memory:
/// slabs of eight rows, made of 8 x 8 blocks of 128 contiguous bytes, one after the other along the
/// dims. WGMMA reads such blocks as a transposed operand (q k^T) and as a plain one (p v), for any
/// head dim that is a multiple of 8, and one bulk copy loads any number of slabs.
///
/// Each sequence starts a new slab. The slabs of one head are contiguous: [head][slab][block] of
/// the keys, then of the values.
///
/// The values have one more block, whose first column is 1, so that p v also yields the sums of the
/// weights. In the last slab of a sequence, rows beyond its end repeat the last key and have zeros
/// as values, also in place of the 1. They change neither maximum nor sum nor result, so scores
/// need no mask.
inline constexpr int kSlabRows = 8;
inline constexpr int kBlockBytes = 128;

/// Keys are padded with zeros to whole steps of 16 dims.
[[nodiscard]] constexpr int key_slab_bytes(int head_dim) {
  return (head_dim + 15) / 16 * 2 * kBlockBytes;
}
[[nodiscard]] constexpr int value_slab_bytes(int head_dim) {
  return (head_dim / 8 + 1) * kBlockBytes;
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
[[nodiscard]] constexpr std::byte* packed_keys(const AttentionWork& w, int head, int slab) {
  const std::int64_t number = std::int64_t{head} * max_slabs(w.rows, w.max_seqs) + slab;
  return w.workspace + number * key_slab_bytes(w.head_dim);
}
[[nodiscard]] constexpr std::byte* packed_values(const AttentionWork& w, int head, int slab) {
  const std::int64_t number = std::int64_t{head} * max_slabs(w.rows, w.max_seqs) + slab;
  return packed_keys(w, w.num_heads, 0) + number * value_slab_bytes(w.head_dim);
}

/// Bytes of the workspace.
[[nodiscard]] inline std::size_t packed_bytes(const AttentionWork& w) {
  return static_cast<std::size_t>(max_slabs(w.rows, w.max_seqs)) *
         static_cast<std::size_t>(w.num_heads) *
         static_cast<std::size_t>(key_slab_bytes(w.head_dim) + value_slab_bytes(w.head_dim));
}

/// Packs keys and values into w.workspace. If there are angles it also rotates the keys, and the
/// queries in place.
void launch_attention_packing(CudaStream& stream, const AttentionWork& w);

}  // namespace fovea::cuda
