#pragma once

#include "fovea/tower/ops/linear.h"
#include "fovea/tower/ops/projected_attention.h"
#include "ops/kernels.h"

namespace fovea::ops {

// The checks and the steps that ops share which are made of other ops.

/// The checks of linear() by themselves. @throws Error(kInvalidArgument).
void check_linear(const LinearArgs& args);
/// The checks of sequences over `rows` rows. @param op the name in messages.
/// @throws Error(kInvalidArgument).
void check_sequences(const char* op, const Sequences& sequences, std::int64_t rows);
/// The checks of attention() by themselves. @param op the name in messages.
/// @throws Error(kInvalidArgument).
void check_attention(const char* op, const ExecContext& ctx, const AttentionArgs& args);

/// attention() of a team: members exchange rows of all heads for all rows of their heads, and back.
void attend_in_team(ExecContext& ctx, const AttentionArgs& args);

/// Whether there is nothing to compute.
[[nodiscard]] inline bool is_empty(const Sequences& sequences) {
  return sequences.max_seqlen == 0 || sequences.cu_seqlens.shape[0] == 1;
}

/// The two steps of mlp() as ops of their own, for backends that compute one after the other.
[[nodiscard]] inline LinearArgs first_layer(const MlpArgs& args) {
  return {.x = args.x,
          .weight = args.fc1,
          .activation = args.activation,
          .rows = args.rows,
          .out = args.wide};
}
[[nodiscard]] inline LinearArgs second_layer(const MlpArgs& args) {
  return {.x = args.wide,
          .weight = args.fc2,
          .residual = args.residual,
          .rows = args.rows,
          .out = args.out,
          .out_column = args.out_column};
}

/// The first step of projected_attention() as an op of its own, for backends that compute the steps
/// one after the other.
[[nodiscard]] inline LinearArgs projection_args(const ProjectedAttentionArgs& args) {
  return {.x = args.x, .weight = args.projection, .rows = args.sequences.rows, .out = args.qkv};
}
/// Its other steps.
[[nodiscard]] inline HeadAttentionArgs head_attention_args(const ProjectedAttentionArgs& args) {
  return {.qkv = args.qkv,
          .cos = args.cos,
          .sin = args.sin,
          .sequences = args.sequences,
          .num_heads = args.num_heads,
          .head_dim = args.head_dim,
          .scale = args.scale,
          .out = args.out,
          .norms = args.norms,
          .projection_dtype = args.projection.dtype};
}
/// The last step of head_attention().
[[nodiscard]] inline AttentionArgs attention_args(const HeadAttentionArgs& args) {
  return {.qkv = args.qkv,
          .sequences = args.sequences,
          .num_heads = args.num_heads,
          .head_dim = args.head_dim,
          .scale = args.scale,
          .out = args.out,
          .projection_dtype = args.projection_dtype};
}
/// That of the other two ops, for attend_to_rows().
[[nodiscard]] inline const AttentionArgs& attention_args(const AttentionArgs& args) { return args; }
[[nodiscard]] inline AttentionArgs attention_args(const ProjectedAttentionArgs& args) {
  return attention_args(head_attention_args(args));
}

/// Calls compute(args). Where the caller wants quantized rows that the kernels do not write,
/// args.out is memory of this function then, and the quantization a step of its own.
/// @param by_kernels whether one function of Kernels computes all of it.
template <class Args, class Compute>
void attend_to_rows(ExecContext& ctx, Args args, bool by_kernels, const Compute& compute) {
  const TensorView out = args.out;
  if (out.dtype != DType::kF8E4M3 ||
      (by_kernels && ctx.kernels.quantizes_attention(attention_args(args)))) {
    return compute(args);
  }
  const Arena::Scope scope(ctx.arena);
  args.out = ctx.arena.tensor(args.qkv.dtype, out.shape);
  compute(args);
  ctx.kernels.quantize_rows(ctx.submission(), args.out, args.sequences.rows, out);
}

}  // namespace fovea::ops
