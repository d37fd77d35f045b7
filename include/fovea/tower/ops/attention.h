#pragma once

#include <cstdint>
#include <limits>

#include "fovea/export.h"
#include "fovea/tower/core/tensor_view.h"
#include "fovea/tower/ops/context.h"

namespace fovea::ops {

/// More rows than a sequence has: no mask.
inline constexpr std::int64_t kAllRows = std::numeric_limits<std::int64_t>::max();

/// How rows are divided into sequences, inside which attention happens.
struct Sequences {
  ConstTensorView cu_seqlens;  ///< [max_seqs + 1] i32: sequence s covers rows [cu[s], cu[s + 1]);
                               ///< not decreasing; written by no op, as live counts
  LiveRows seqs = {};          ///< live sequences, one less than the live entries of cu_seqlens
  std::int64_t max_seqlen;     ///< host bound on any sequence length, fixed at capture; <= rows
  LiveRows rows = {};          ///< no live sequence goes beyond them
  /// The mask of a prefix language model: row i of a sequence sees row j of it if j < prefix_rows
  /// or j <= i. All rows see the prefix, later ones see only those before them, and themselves. 0
  /// is a causal mask; sequences of at most so many rows have none.
  std::int64_t prefix_rows = kAllRows;

  /// Whether a sequence can be so long that rows of it do not see all others.
  [[nodiscard]] bool is_masked() const { return prefix_rows < max_seqlen; }
};

struct AttentionArgs {
  ConstTensorView qkv;  ///< [rows, 3 * num_heads * head_dim], activation dtype: q | k | v, heads
                        ///< contiguous
  Sequences sequences;
  std::int64_t num_heads;
  std::int64_t head_dim;  ///< multiple of 8
  float scale;            ///< applied to q . k, usually head_dim^-0.5
  TensorView out;         ///< [rows, num_heads * head_dim], activation dtype, or quantized
                          ///< (input_rows); no overlap with qkv
  /// PackedLinear::dtype of the layer that computed qkv: attention behind 8 bits need not be more
  /// precise than they are. kF32 where there is no such layer.
  DType projection_dtype = DType::kF32;
};

/// Softmax attention inside every sequence, all heads:
///   out[i, h] = sum_j softmax_j(scale * q[i, h] . k[j, h]) v[j, h]
/// over the rows j of the sequence of i that i sees (Sequences::prefix_rows).
/// Scores are never stored: keys are visited in blocks counted from the start of each sequence,
/// sums are f32, and a sequence gives the same bits alone and packed (CPU). Rows that no live
/// sequence covers are not part of any result. Zero-length sequences are legal.
/// Products are of the activation dtype, but a CPU multiplies integers of 16 bits behind weights of
/// kI8 and where its layers multiply bf16: queries and keys are multiples of the largest magnitude
/// of their row, values of that of their component among 128 keys, and softmax is f32
/// (src/ops/cpu/attention/int16/body.h); and a Hopper GPU multiplies E4M3 behind weights of kF8E4M3
/// where the scale is positive and there are enough rows: queries, keys and values as they are,
/// without scales, and weights whose logarithm is rounded to an eighth of that of 2
/// (src/ops/cuda/attention/softmax_e4m3.cuh). A row that is not seen has a weight of 0, but takes
/// part in the scale of values, and a NaN or infinity in it can reach rows that do not see it.
/// Quantized rows behind a kernel of E4M3 all have the scale 1/4, as a row is between the values
/// that it is made of: numbers from 2^-8 to 112 keep their precision. Behind another they have the
/// scales of their largest numbers.
/// Asynchronous on ctx.stream; safe to capture.
/// @throws Error(kInvalidArgument) if a shape or dtype does not match the list above, for a
/// negative prefix_rows, or if qkv or out does not begin at a multiple of 16 bytes on a GPU;
/// Error(kUnsupported) for heads of more than 128 dims on a GPU.
/// Source: Vaswani et al., "Attention Is All You Need", arXiv:1706.03762, section 3.2.1; the
/// streaming form is that of Dao, "FlashAttention-2", arXiv:2307.08691; the mask that of Raffel et
/// al., "Exploring the Limits of Transfer Learning", arXiv:1910.10683, section 3.2.1.
FOVEA_API void attention(ExecContext& ctx, const AttentionArgs& args);

}  // namespace fovea::ops
