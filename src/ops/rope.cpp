// Checks of the angles of the rotary embedding.
#include "fovea/tower/ops/rope.h"

#include "core/check.h"
#include "ops/arg_check.h"
#include "ops/kernels.h"

namespace fovea::ops {

void rope_angles(ExecContext& ctx, const RopeAnglesArgs& args) {
  constexpr const char* kOp = "rope_angles";
  FOVEA_CHECK(args.positions.shape.rank() == 2, kInvalidArgument, kOp,
              ": positions must be int32 [rows, 4], got shape ", args.positions.shape);
  const std::int64_t rows = args.positions.shape[0];
  check_tensor(kOp, "positions", args.positions, DType::kI32, {rows, 4});
  FOVEA_CHECK(args.inv_freq.shape.rank() == 1 && args.inv_freq.shape[0] > 0, kInvalidArgument, kOp,
              ": inv_freq must be float32 [head_dim / 4], got shape ", args.inv_freq.shape);
  const std::int64_t frequencies = args.inv_freq.shape[0];
  check_tensor(kOp, "inv_freq", args.inv_freq, DType::kF32, {frequencies});
  check_tensor(kOp, "cos", args.cos, DType::kF32, {rows, 2 * frequencies});
  check_tensor(kOp, "sin", args.sin, DType::kF32, {rows, 2 * frequencies});
  if (rows == 0) return;
  ctx.kernels.rope_angles(ctx.submission(), args);
}

}  // namespace fovea::ops
