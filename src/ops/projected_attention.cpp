// Checks of attention over heads and over a projection, and of the angles that they rotate by.
#include "fovea/tower/ops/projected_attention.h"

#include "core/check.h"
#include "ops/arg_check.h"
#include "ops/kernels.h"
#include "ops/steps.h"

namespace fovea::ops {

namespace {

constexpr std::int64_t kMaxCoordinates = 4;  // numbers of a position

/// The checks of head_attention() by themselves. @param op the name in messages.
void check(const char* op, const ExecContext& ctx, const HeadAttentionArgs& args) {
  check_attention(op, ctx, attention_args(args));
  const HeadNorms& norms = args.norms;
  if (norms.q || norms.k || norms.v) {
    check_tensor(op, "norms.q", norms.q, DType::kF32, {args.head_dim});
    check_tensor(op, "norms.k", norms.k, DType::kF32, {args.head_dim});
    if (norms.v) check_tensor(op, "norms.v", norms.v, DType::kF32, {args.head_dim});
    FOVEA_CHECK(norms.epsilon > 0, kInvalidArgument, op, ": epsilon must be > 0, got ",
                norms.epsilon);
  }
  if (!args.cos && !args.sin) return;
  const std::int64_t rows = args.qkv.shape[0];
  check_tensor(op, "cos", args.cos, DType::kF32, {rows, args.head_dim / 2});
  check_tensor(op, "sin", args.sin, DType::kF32, {rows, args.head_dim / 2});
}

void check(const ExecContext& ctx, const ProjectedAttentionArgs& args) {
  constexpr const char* kOp = "projected_attention";
  check(kOp, ctx, head_attention_args(args));
  const std::int64_t rows = args.qkv.shape[0];
  const PackedLinear& projection = args.projection;
  FOVEA_CHECK(projection.out_features == args.qkv.shape[1], kInvalidArgument, kOp,
              ": projection must be to ", args.qkv.shape[1], " features, got ",
              projection.out_features);
  check_layer_input(kOp, args.x, projection);
  FOVEA_CHECK(args.x.shape[0] == rows, kInvalidArgument, kOp, ": x must have ", rows, " rows, got ",
              args.x.shape);
  check_disjoint(kOp, "qkv", args.qkv, "x", args.x);
}

}  // namespace

void rope_angles(ExecContext& ctx, const RopeAnglesArgs& args) {
  constexpr const char* kOp = "rope_angles";
  FOVEA_CHECK(args.positions.shape.rank() == 2, kInvalidArgument, kOp,
              ": positions must be int32 [rows, 4], got shape ", args.positions.shape);
  const std::int64_t rows = args.positions.shape[0];
  check_tensor(kOp, "positions", args.positions, DType::kI32, {rows, 4});
  const Shape& frequencies = args.inv_freq.shape;
  const bool halves = frequencies.rank() == 1 && frequencies[0] > 0 && frequencies[0] % 2 == 0;
  const bool matrix = frequencies.rank() == 2 && frequencies[0] >= 1 &&
                      frequencies[0] <= kMaxCoordinates && frequencies[1] > 0;
  FOVEA_CHECK(halves || matrix, kInvalidArgument, kOp,
              ": inv_freq must be float32 [head_dim / 2], half of it per axis, or [1 to ",
              kMaxCoordinates, ", head_dim / 2], got shape ", frequencies);
  const Shape angles{rows, frequencies[frequencies.rank() - 1]};
  check_tensor(kOp, "inv_freq", args.inv_freq, DType::kF32, frequencies);
  check_tensor(kOp, "cos", args.cos, DType::kF32, angles);
  check_tensor(kOp, "sin", args.sin, DType::kF32, angles);
  if (rows == 0) return;
  ctx.kernels.rope_angles(ctx.submission(), args);
}

void head_attention(ExecContext& ctx, const HeadAttentionArgs& args) {
  check("head_attention", ctx, args);
  if (is_empty(args.sequences)) return;
  attend_to_rows(ctx, args, ctx.team == nullptr, [&](const HeadAttentionArgs& to_rows) {
    if (ctx.team == nullptr) return ctx.kernels.head_attention(ctx.submission(), to_rows);
    ctx.kernels.prepare_heads(ctx.submission(), to_rows);
    attend_in_team(ctx, attention_args(to_rows));
  });
}

void projected_attention(ExecContext& ctx, const ProjectedAttentionArgs& args) {
  check(ctx, args);
  if (is_empty(args.sequences)) return;
  if (ctx.team != nullptr && !ctx.kernels.team_attention_workspace(args, ctx.team->size)) {
    ctx.kernels.linear(ctx.submission(), projection_args(args));
    return head_attention(ctx, head_attention_args(args));
  }
  attend_to_rows(ctx, args, true, [&](const ProjectedAttentionArgs& to_rows) {
    ctx.kernels.projected_attention(ctx.submission(), to_rows);
  });
}

}  // namespace fovea::ops
