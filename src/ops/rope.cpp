// Checks of the rotary-embedding ops.
#include "ops/rope.h"

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
  ctx.kernels.rope_angles(ctx.stream, args);
}

void rope(ExecContext& ctx, const RopeArgs& args) {
  constexpr const char* kOp = "rope";
  FOVEA_CHECK(args.num_heads > 0, kInvalidArgument, kOp, ": num_heads must be > 0, got ",
              args.num_heads);
  FOVEA_CHECK(args.head_dim > 0 && args.head_dim % 2 == 0, kInvalidArgument, kOp,
              ": head_dim must be positive and even, got ", args.head_dim);
  check_activation(kOp, "qkv", args.qkv, 2);
  const std::int64_t rows = args.qkv.shape[0];
  check_tensor(kOp, "qkv", args.qkv, args.qkv.dtype, {rows, 3 * args.num_heads * args.head_dim});
  check_tensor(kOp, "cos", args.cos, DType::kF32, {rows, args.head_dim / 2});
  check_tensor(kOp, "sin", args.sin, DType::kF32, {rows, args.head_dim / 2});
  if (rows == 0) return;
  ctx.kernels.rope(ctx.stream, args);
}

}  // namespace fovea::ops
