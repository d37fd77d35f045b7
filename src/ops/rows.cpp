// Checks of the ops that move, offset and average rows.
#include "fovea/tower/ops/rows.h"

#include "core/check.h"
#include "ops/arg_check.h"
#include "ops/kernels.h"

namespace fovea::ops {

namespace {

/// x of copy_row_blocks: a constant in f32, or `blocks` blocks of the activation dtype.
void check_source(const char* op, const CopyRowBlocksArgs& args, std::int64_t blocks) {
  const std::int64_t cols = args.x.shape.rank() == 2 ? args.x.shape[1] : 0;
  if (args.x_block_rows == 0) {
    check_tensor(op, "x", args.x, DType::kF32, {args.x_first + args.count, cols});
    return;
  }
  FOVEA_CHECK(args.x_first + args.count <= args.x_block_rows, kInvalidArgument, op, ": rows ",
              args.x_first, "..", args.x_first + args.count, " are not in a block of ",
              args.x_block_rows, " rows of x");
  check_tensor(op, "x", args.x, args.out.dtype, {blocks * args.x_block_rows, cols});
}

}  // namespace

void copy_row_blocks(ExecContext& ctx, const CopyRowBlocksArgs& args) {
  constexpr const char* kOp = "copy_row_blocks";
  check_activation(kOp, "out", args.out, 2);
  FOVEA_CHECK(args.count >= 1 && args.x_block_rows >= 0 && args.x_first >= 0 &&
                  args.out_first >= 0 && args.out_column >= 0,
              kInvalidArgument, kOp, ": count must be >= 1 and places >= 0, got count ", args.count,
              ", x_block_rows ", args.x_block_rows, ", x_first ", args.x_first, ", out_first ",
              args.out_first, ", out_column ", args.out_column);
  FOVEA_CHECK(args.out_first + args.count <= args.out_block_rows &&
                  args.out.shape[0] % args.out_block_rows == 0,
              kInvalidArgument, kOp, ": rows ", args.out_first, "..", args.out_first + args.count,
              " are not in a block of ", args.out_block_rows, " of ", args.out.shape[0], " rows");
  check_source(kOp, args, args.out.shape[0] / args.out_block_rows);
  FOVEA_CHECK(args.out_column + args.x.shape[1] <= args.out.shape[1], kInvalidArgument, kOp,
              ": columns ", args.out_column, "..", args.out_column + args.x.shape[1],
              " are not in out, which has ", args.out.shape[1]);
  check_disjoint(kOp, "out", args.out, "x", args.x);
  if (args.out.shape[0] == 0) return;
  ctx.kernels.copy_row_blocks(ctx.submission(), args);
}

void add_table(ExecContext& ctx, const AddTableArgs& args) {
  constexpr const char* kOp = "add_table";
  check_activation(kOp, "x", args.x, 2);
  FOVEA_CHECK(args.table.shape.rank() == 2 && args.table.shape[0] >= 1, kInvalidArgument, kOp,
              ": table must be float32 [period, ", args.x.shape[1], "], got shape ",
              args.table.shape);
  check_tensor(kOp, "table", args.table, DType::kF32, {args.table.shape[0], args.x.shape[1]});
  if (args.x.shape[0] == 0) return;
  ctx.kernels.add_table(ctx.submission(), args);
}

void mean_row_blocks(ExecContext& ctx, const MeanRowBlocksArgs& args) {
  constexpr const char* kOp = "mean_row_blocks";
  check_activation(kOp, "out", args.out, 2);
  FOVEA_CHECK(args.block_rows >= 1, kInvalidArgument, kOp, ": block_rows must be >= 1, got ",
              args.block_rows);
  const std::int64_t blocks = args.out.shape[0];
  const std::int64_t cols = args.out.shape[1];
  const bool has_runs = static_cast<bool>(args.runs);
  const std::int64_t rows =
      has_runs && args.x.shape.rank() == 2 ? args.x.shape[0] : blocks * args.block_rows;
  check_tensor(kOp, "x", args.x, args.out.dtype, {rows, cols});
  if (has_runs) check_tensor(kOp, "runs", args.runs, DType::kI32, {blocks, 4});
  if (args.bias || args.scale) {
    check_tensor(kOp, "bias", args.bias, DType::kF32, {cols});
    check_tensor(kOp, "scale", args.scale, DType::kF32, {cols});
  }
  check_disjoint(kOp, "out", args.out, "x", args.x);
  if (args.out.shape[0] == 0) return;
  ctx.kernels.mean_row_blocks(ctx.submission(), args);
}

}  // namespace fovea::ops
