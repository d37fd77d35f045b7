#pragma once

#include <cstdint>

#include "core/tensor_view.h"
#include "ops/context.h"
#include "ops/linear.h"
#include "ops/rope.h"

namespace fovea::ops {

struct AttentionArgs {
  ConstTensorView x = {};  ///< [rows, in_features], activation dtype, or neither this nor
  const PackedLinear* projection = nullptr;  ///< to 3 * num_heads * head_dim features
  TensorView qkv;  ///< [rows, 3 * num_heads * head_dim], activation dtype: q | k | v, heads
                   ///< contiguous; read only, unless there are angles or x
  ConstTensorView cos = {};    ///< [rows, head_dim / 2] f32, or neither this nor sin
  ConstTensorView sin = {};    ///< [rows, head_dim / 2] f32
  ConstTensorView cu_seqlens;  ///< [max_seqs + 1] i32: sequence s covers rows [cu[s], cu[s + 1]);
                               ///< not decreasing
  LiveRows seqs = {};          ///< live entries of cu_seqlens, one less than its live length
  std::int64_t num_heads;
  std::int64_t head_dim;    ///< multiple of 8
  float scale;              ///< applied to q . k, usually head_dim^-0.5
  std::int64_t max_seqlen;  ///< host bound on any sequence length, fixed at capture; <= rows
  LiveRows rows = {};       ///< no live sequence goes beyond them
  TensorView out;           ///< [rows, num_heads * head_dim], activation dtype; no overlap with qkv
  TensorView workspace = {};  ///< set by the op from Kernels::attention_workspace, not by callers
  bool is_recorded = false;   ///< set by the op from its context, not by callers
};

/// Softmax attention inside every sequence, all heads, without a mask:
///   out[i, h] = sum_j softmax_j(scale * q[i, h] . k[j, h]) v[j, h],  i and j in the same sequence
/// Scores are never stored: keys are visited in blocks counted from the start of each sequence,
/// sums are f32, and a sequence gives the same bits alone and packed (CPU). Rows that no live
/// sequence covers are not part of any result. Zero-length sequences are legal.
///
/// With x, the op begins with qkv = linear(x, projection), so that a backend may bring the rows of
/// the product where its attention reads them. With cos and sin, q and k are then rotated as by
/// rope(), each rounded once to the activation dtype. What `qkv` holds afterwards is unspecified in
/// either case.
///
/// Asynchronous on ctx.stream; safe to capture.
/// @throws Error(kInvalidArgument) if a shape or dtype does not match the list above, or if qkv or
/// out does not begin at a multiple of 16 bytes on a GPU; Error(kUnsupported) for heads of more
/// than 128 dims on a GPU.
void attention(ExecContext& ctx, const AttentionArgs& args);

/// The product that attention over x begins with, for backends that compute it on its own.
[[nodiscard]] inline LinearArgs projection_args(const AttentionArgs& args) {
  return {.x = args.x,
          .weight = *args.projection,
          .rows = args.rows,
          .out = args.qkv,
          .is_recorded = args.is_recorded};
}

/// The rotation that attention with angles begins with, for backends that do it on its own.
[[nodiscard]] inline RopeArgs rope_args(const AttentionArgs& args) {
  return {.qkv = args.qkv,
          .cos = args.cos,
          .sin = args.sin,
          .num_heads = args.num_heads,
          .head_dim = args.head_dim,
          .rows = args.rows};
}

}  // namespace fovea::ops
