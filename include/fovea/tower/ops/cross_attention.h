#pragma once

#include <cstdint>

#include "fovea/export.h"
#include "fovea/tower/core/tensor_view.h"
#include "fovea/tower/ops/context.h"

namespace fovea::ops {

struct CrossAttentionArgs {
  ConstTensorView q;   ///< [queries, num_heads * head_dim], activation dtype, heads contiguous
  ConstTensorView kv;  ///< [keys, 2 * num_heads * head_dim], activation dtype: k | v, heads
                       ///< contiguous in each
  ConstTensorView cu_queries;  ///< [max_seqs + 1] i32: sequence s has rows [cu[s], cu[s + 1]) of q;
                               ///< not decreasing; written by no op, as live counts
  ConstTensorView cu_keys;     ///< [max_seqs + 1] i32: the same of its rows of kv
  LiveRows seqs = {};          ///< live sequences, one less than the live entries of the offsets
  std::int64_t num_heads;
  std::int64_t head_dim;  ///< multiple of 8
  float scale;            ///< applied to q . k, usually head_dim^-0.5
  TensorView out;         ///< [queries, num_heads * head_dim], activation dtype; no overlap with q
                          ///< or kv
};

/// Softmax attention of queries to keys that are not theirs, all heads, without a mask:
///   out[i, h] = sum_j softmax_j(scale * q[i, h] . k[j, h]) v[j, h]
/// where i is a query and j a key of the same sequence: pooling of patches by the mean of them or
/// by learned queries, resamplers. A query without keys gets zeros. Keys that a reference masks are
/// no keys here. Scores are never stored; keys are visited in blocks counted from the first of a
/// sequence, products and sums are f32 whatever the layers multiply, out is rounded once. A
/// sequence gives the same bits alone and among others (CPU). Queries that no live sequence covers
/// are not part of any result. Asynchronous on ctx.stream; safe to capture.
/// @throws Error(kInvalidArgument) if a shape or dtype does not match the list above, or if q, kv
/// or out does not begin at a multiple of 16 bytes on a GPU; Error(kUnsupported) for heads of more
/// than 128 dims on a GPU.
/// Source: Vaswani et al., "Attention Is All You Need", arXiv:1706.03762, section 3.2.1; the
/// streaming form is that of Milakov and Gimelshein, arXiv:1805.02867.
FOVEA_API void cross_attention(ExecContext& ctx, const CrossAttentionArgs& args);

}  // namespace fovea::ops
