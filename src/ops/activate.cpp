// Checks of activations that follow no GEMM, of the gated one and of limits.
#include "fovea/tower/ops/activate.h"

#include "core/check.h"
#include "ops/arg_check.h"
#include "ops/kernels.h"

namespace fovea::ops {

void activate(ExecContext& ctx, const ActivateArgs& args) {
  check_activation("activate", "x", args.x, 2);
  if (args.x.shape[0] == 0) return;
  ctx.kernels.activate(ctx.submission(), args);
}

void gated(ExecContext& ctx, const GatedArgs& args) {
  constexpr const char* kOp = "gated";
  check_activation(kOp, "x", args.x, 2);
  FOVEA_CHECK(args.x.shape[1] % 2 == 0, kInvalidArgument, kOp,
              ": x must have an even number of columns, got shape ", args.x.shape);
  check_result(kOp, args.out, args.x.dtype, {args.x.shape[0], args.x.shape[1] / 2});
  check_disjoint(kOp, "out", args.out, "x", args.x);
  FOVEA_CHECK(args.limit > 0, kInvalidArgument, kOp, ": limit must be > 0, got ", args.limit);
  if (args.out.shape[0] == 0) return;
  ctx.kernels.gated(ctx.submission(), args);
}

void clamp(ExecContext& ctx, const ClampArgs& args) {
  constexpr const char* kOp = "clamp";
  check_activation(kOp, "x", args.x, 2);
  const Shape columns{args.x.shape[1]};
  check_tensor(kOp, "least", args.least, DType::kF32, columns);
  check_tensor(kOp, "most", args.most, DType::kF32, columns);
  check_tensor(kOp, "out", args.out, args.x.dtype, args.x.shape);
  if (args.x.shape[0] == 0) return;
  ctx.kernels.clamp(ctx.submission(), args);
}

}  // namespace fovea::ops
