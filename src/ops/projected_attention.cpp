// Checks of attention over heads and over a projection, and of the angles that they rotate by.
#include "fovea/tower/ops/projected_attention.h"

#include "core/check.h"
#include "ops/arg_check.h"
#include "ops/kernels.h"
#include "ops/steps.h"

namespace fovea::ops {

namespace {

constexpr const char* kOp = "projected_attention";

void check(const ProjectedAttentionArgs& args) {
  constexpr const char* kOp = "projected_attention";
  check(kOp, head_attention_args(args));
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
  FOVEA_CHECK(frequencies.rank() == 1 && frequencies[0] > 0 && frequencies[0] % 2 == 0,
              kInvalidArgument, kOp,
              ": inv_freq must be float32 [head_dim / 2], half of it per axis, got shape ",
              frequencies);
  check_tensor(kOp, "inv_freq", args.inv_freq, DType::kF32, frequencies);
  check_tensor(kOp, "cos", args.cos, DType::kF32, angles);
  check_tensor(kOp, "sin", args.sin, DType::kF32, angles);
  if (rows == 0) return;
  ctx.kernels.rope_angles(ctx.submission(), args);
}

void projected_attention(ExecContext& ctx, const ProjectedAttentionArgs& args) {
  check(args);
  if (is_empty(args.sequences)) return;
  ctx.kernels.projected_attention(ctx.submission(), args);
}

}  // namespace fovea::ops
void head_attention(ExecContext& ctx, const HeadAttentionArgs& args) {
  check("head_attention", args);
  if (is_empty(args.sequences)) return;
  ctx.kernels.head_attention(ctx.submission(), args);
}

