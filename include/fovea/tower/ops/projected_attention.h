#pragma once

#include <cstdint>

#include "fovea/export.h"
#include "fovea/tower/ops/attention.h"
#include "fovea/tower/ops/linear.h"

namespace fovea::ops {

struct RopeAnglesArgs {
  ConstTensorView positions;  ///< [rows, 4] i32: y, x, height, width in patches (the last two
                              ///< unused), or the coordinates that inv_freq has
  ConstTensorView inv_freq;   ///< [head_dim / 2] f32, of the row part, then of the column part; or
                              ///< [1 to 4 coordinates, head_dim / 2]
  LiveRows rows = {};
  TensorView cos;  ///< [rows, head_dim / 2] f32
  TensorView sin;  ///< [rows, head_dim / 2] f32
};

/// Angles of the two-dimensional rotary embedding, row part first:
///   angle[r, j] = y_r * inv_freq[j]  for j < head_dim / 4,  x_r * inv_freq[j] after
/// or, where inv_freq says what every coordinate turns, of any number of dimensions:
///   angle[r, j] = sum_a positions[r, a] * inv_freq[a, j], a ascending
/// Products and sums are rounded to f32 before cosine and sine are taken. Once per forward.
/// Asynchronous on ctx.stream; safe to capture.
/// @throws Error(kInvalidArgument) if a shape or dtype does not match the list above.
/// Source: docs/reference/qwen_glm.md, "Rotary positions".
FOVEA_API void rope_angles(ExecContext& ctx, const RopeAnglesArgs& args);

/// RMS norms of the heads of q, of k and of v, each head by itself, with the same weights for all
/// heads.
struct HeadNorms {
  ConstTensorView q = {};  ///< [head_dim] f32 on the device, or none of the three
  ConstTensorView k = {};  ///< [head_dim] f32 on the device
  ConstTensorView v = {};  ///< [head_dim] f32 on the device, or absent: v stays what it is
  float epsilon = 1e-6f;   ///< added to the mean square, > 0
};

struct ProjectedAttentionArgs {
  ConstTensorView x;               ///< [rows, in_features], activation dtype or quantized
  const PackedLinear& projection;  ///< to 3 * num_heads * head_dim features: q | k | v, heads
                                   ///< contiguous; must outlive recorded work
  TensorView qkv;  ///< [rows, 3 * num_heads * head_dim], activation dtype: memory to work in, no
                   ///< overlap with x or out; what it holds afterwards is unspecified
  ConstTensorView cos = {};  ///< [rows, head_dim / 2] f32, or neither this nor sin
  ConstTensorView sin = {};  ///< [rows, head_dim / 2] f32
  Sequences sequences;
  std::int64_t num_heads;
  std::int64_t head_dim;  ///< multiple of 8
  float scale;            ///< applied to q . k, usually head_dim^-0.5
  TensorView out;         ///< [rows, num_heads * head_dim], activation dtype, or quantized
  HeadNorms norms = {};
};

struct HeadAttentionArgs {
  TensorView qkv;  ///< [rows, 3 * num_heads * head_dim], activation dtype: q | k | v, heads
                   ///< contiguous; what it holds afterwards is unspecified
  ConstTensorView cos = {};  ///< [rows, head_dim / 2] f32, or neither this nor sin
  ConstTensorView sin = {};  ///< [rows, head_dim / 2] f32
  Sequences sequences;
  std::int64_t num_heads;
  std::int64_t head_dim;  ///< multiple of 8
  float scale;            ///< applied to q . k, usually head_dim^-0.5
  TensorView out;         ///< [rows, num_heads * head_dim], activation dtype, or quantized; no
                          ///< overlap with qkv
  HeadNorms norms = {};
  DType projection_dtype = DType::kF32;  ///< as in AttentionArgs
};

/// Attention over heads that are normalised and rotated first, as one op so that a backend can do
/// both where its attention reads them:
///   normalise every head of q and k, and of v, as rms_norm does, where there are norms
///   rotate q and k of every head by the angles of their row, if there are angles
///   out = attention(qkv)
/// Rounding, rotation, asynchrony and errors are those of projected_attention, which computes qkv
/// as well.
FOVEA_API void head_attention(ExecContext& ctx, const HeadAttentionArgs& args);

/// Attention over a projection of x, as one op so that a backend can store the GEMM's result where
/// its attention reads it:
///   qkv = linear(x, projection),  rounded to the activation dtype
///   normalise every head of q and k, and of v, as rms_norm does, where there are norms
///   rotate q and k of every head by the angles of their row, if there are angles
///   out = attention(qkv), with the products that suit the projection's dtype
/// The rotary embedding pairs the halves of a head (j with j + h, h = head_dim / 2):
///   y[j] = q[j] cos[j] - q[j + h] sin[j],  y[j + h] = q[j + h] cos[j] + q[j] sin[j]
/// in f32, rounded once to the activation dtype; k alike. Models whose reference pairs neighbours
/// (2 j with 2 j + 1) permute the rows of q and k in the projection, which changes no q . k.
/// Asynchronous on ctx.stream; safe to capture.
/// @throws Error(kInvalidArgument) if a shape or dtype does not match the list above, or if qkv,
/// out, cos, sin or a norm does not begin at a multiple of 16 bytes on a GPU; Error(kUnsupported)
/// for heads of more than 128 dims on a GPU. Source: docs/reference/qwen_glm.md, "Rotary
/// positions"; Su et al., "RoFormer", arXiv:2104.09864.
FOVEA_API void projected_attention(ExecContext& ctx, const ProjectedAttentionArgs& args);

}  // namespace fovea::ops
