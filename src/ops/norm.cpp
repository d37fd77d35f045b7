// Checks of the normalisation ops.
#include "fovea/tower/ops/norm.h"

#include "core/check.h"
#include "ops/arg_check.h"
#include "ops/kernels.h"

namespace fovea::ops {

namespace {

void check_residual(const char* op, const ConstTensorView& residual, const TensorView& out,
                    const ConstTensorView& x) {
  if (!residual) return;
  FOVEA_CHECK(out.dtype == x.dtype, kInvalidArgument, op, ": a quantized result has no residual");
  check_tensor(op, "residual", residual, x.dtype, x.shape);
}

void check_epsilon(const char* op, float epsilon) {
  FOVEA_CHECK(epsilon > 0, kInvalidArgument, op, ": epsilon must be > 0, got ", epsilon);
}

}  // namespace

void layer_norm(ExecContext& ctx, const LayerNormArgs& args) {
  constexpr const char* kOp = "layer_norm";
  check_activation(kOp, "x", args.x, 2);
  const Shape columns{args.x.shape[1]};
  check_tensor(kOp, "weight", args.weight, DType::kF32, columns);
  check_tensor(kOp, "bias", args.bias, DType::kF32, columns);
  check_result(kOp, args.out, args.x.dtype, args.x.shape);
  check_residual(kOp, args.residual, args.out, args.x);
  check_epsilon(kOp, args.epsilon);
  if (args.x.shape[0] == 0) return;
  ctx.kernels.layer_norm(ctx.submission(), args);
}

void rms_norm(ExecContext& ctx, const RmsNormArgs& args) {
  constexpr const char* kOp = "rms_norm";
  check_activation(kOp, "x", args.x, 2);
  check_tensor(kOp, "weight", args.weight, DType::kF32, {args.x.shape[1]});
  check_result(kOp, args.out, args.x.dtype, args.x.shape);
  check_residual(kOp, args.residual, args.out, args.x);
  check_epsilon(kOp, args.epsilon);
  if (args.x.shape[0] == 0) return;
  ctx.kernels.rms_norm(ctx.submission(), args);
}

}  // namespace fovea::ops
