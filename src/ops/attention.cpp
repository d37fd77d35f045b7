// Checks of the attention op.
#include "fovea/tower/ops/attention.h"

#include <cmath>

#include "core/check.h"
#include "ops/arg_check.h"
#include "ops/kernels.h"
#include "ops/steps.h"

namespace fovea::ops {

void check_sequences(const char* op, const Sequences& sequences, std::int64_t rows) {
  const ConstTensorView& cu_seqlens = sequences.cu_seqlens;
  FOVEA_CHECK(cu_seqlens.shape.rank() == 1 && cu_seqlens.shape[0] >= 1, kInvalidArgument, op,
              ": cu_seqlens must be int32 [sequences + 1], got shape ", cu_seqlens.shape);
  check_tensor(op, "cu_seqlens", cu_seqlens, DType::kI32, {cu_seqlens.shape[0]});
  FOVEA_CHECK(sequences.max_seqlen >= 0 && sequences.max_seqlen <= rows, kInvalidArgument, op,
              ": max_seqlen must be in [0, ", rows, "], got ", sequences.max_seqlen);
  FOVEA_CHECK(sequences.prefix_rows >= 0, kInvalidArgument, op,
              ": prefix_rows must not be negative, got ", sequences.prefix_rows);
}

void check_attention(const char* op, const ExecContext& ctx, const AttentionArgs& args) {
  FOVEA_CHECK(args.num_heads > 0, kInvalidArgument, op, ": num_heads must be > 0, got ",
              args.num_heads);
  FOVEA_CHECK(args.head_dim > 0 && args.head_dim % kHeadDimMultiple == 0, kInvalidArgument, op,
              ": head_dim must be a positive multiple of ", kHeadDimMultiple, ", got ",
              args.head_dim);
  FOVEA_CHECK(std::isfinite(args.scale), kInvalidArgument, op, ": scale must be finite, got ",
              args.scale);
  check_activation(op, "qkv", args.qkv, 2);
  const std::int64_t rows = args.qkv.shape[0];
  const std::int64_t width = args.num_heads * args.head_dim;
  check_tensor(op, "qkv", args.qkv, args.qkv.dtype, {rows, 3 * width});
  check_result(op, args.out, args.qkv.dtype, {rows, width});
  check_disjoint(op, "out", args.out, "qkv", args.qkv);
  check_sequences(op, args.sequences, ctx.all_rows(rows));
  FOVEA_CHECK(ctx.team == nullptr || args.num_heads % ctx.team->size == 0, kInvalidArgument, op,
              ": ", args.num_heads, " heads cannot be divided among a team of ", ctx.all_rows(1));
}

void attention(ExecContext& ctx, const AttentionArgs& args) {
  check_attention("attention", ctx, args);
  if (is_empty(args.sequences)) return;
  attend_to_rows(ctx, args, ctx.team == nullptr, [&](const AttentionArgs& to_rows) {
    if (ctx.team != nullptr) return attend_in_team(ctx, to_rows);
    ctx.kernels.attention(ctx.submission(), to_rows);
  });
}

}  // namespace fovea::ops
