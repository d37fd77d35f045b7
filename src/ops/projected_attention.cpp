// Checks of attention over a projection.
#include "fovea/tower/ops/projected_attention.h"

#include "core/check.h"
#include "ops/arg_check.h"
#include "ops/kernels.h"
#include "ops/steps.h"

namespace fovea::ops {

namespace {

constexpr const char* kOp = "projected_attention";

void check(const ProjectedAttentionArgs& args) {
  check_attention(kOp, attention_args(args));
  const std::int64_t rows = args.qkv.shape[0];
  const PackedLinear& projection = args.projection;
  FOVEA_CHECK(projection.out_features == args.qkv.shape[1], kInvalidArgument, kOp,
              ": projection must be to ", args.qkv.shape[1], " features, got ",
              projection.out_features);
  check_layer_input(kOp, args.x, projection);
  FOVEA_CHECK(args.x.shape[0] == rows, kInvalidArgument, kOp, ": x must have ", rows, " rows, got ",
              args.x.shape);
  check_disjoint(kOp, "qkv", args.qkv, "x", args.x);
  if (!args.cos && !args.sin) return;
  check_tensor(kOp, "cos", args.cos, DType::kF32, {rows, args.head_dim / 2});
  check_tensor(kOp, "sin", args.sin, DType::kF32, {rows, args.head_dim / 2});
}

}  // namespace

void projected_attention(ExecContext& ctx, const ProjectedAttentionArgs& args) {
  check(args);
  if (is_empty(args.sequences)) return;
  ctx.kernels.projected_attention(ctx.submission(), args);
}

}  // namespace fovea::ops
