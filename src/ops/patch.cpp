// Checks of the ops between pixels and the first block.
#include "fovea/tower/ops/patch.h"

#include "core/check.h"
#include "ops/arg_check.h"
#include "ops/kernels.h"

namespace fovea::ops {

namespace {

constexpr std::int64_t kChannels = 3;
constexpr std::int64_t kByteValues = 256;

/// @return whether there is work.
bool check_positions(const char* op, const AddPositionsArgs& args) {
  FOVEA_CHECK(args.table_height > 0 && args.table_width > 0, kInvalidArgument, op,
              ": table_height and table_width must be > 0, got ", args.table_height, " and ",
              args.table_width);
  check_activation(op, "x", args.x, 2);
  const std::int64_t rows = args.x.shape[0];
  check_tensor(op, "table", args.table, DType::kF32,
               {args.table_height * args.table_width, args.x.shape[1]});
  check_tensor(op, "positions", args.positions, DType::kI32, {rows, 4});
  return rows > 0;
}

}  // namespace

void patchify(ExecContext& ctx, const PatchifyArgs& args) {
  constexpr const char* kOp = "patchify";
  FOVEA_CHECK(args.patch_size > 0 && args.temporal_patch_size > 0, kInvalidArgument, kOp,
              ": patch_size and temporal_patch_size must be > 0, got ", args.patch_size, " and ",
              args.temporal_patch_size);
  check_activation(kOp, "out", args.out, 2);
  const std::int64_t rows = args.out.shape[0];
  const std::int64_t cols =
      kChannels * args.temporal_patch_size * args.patch_size * args.patch_size;
  check_tensor(kOp, "out", args.out, args.out.dtype, {rows, cols});
  FOVEA_CHECK(args.pixels.shape.rank() == 1, kInvalidArgument, kOp,
              ": pixels must be uint8 [bytes], got shape ", args.pixels.shape);
  check_tensor(kOp, "pixels", args.pixels, DType::kU8, args.pixels.shape);
  check_tensor(kOp, "sources", args.sources, DType::kI32, {rows, 4});
  check_tensor(kOp, "table", args.table, DType::kF32, {kChannels, kByteValues});
  if (rows == 0) return;
  ctx.kernels.patchify(ctx.submission(), args);
}

void add_positions_bilinear(ExecContext& ctx, const AddPositionsArgs& args) {
  if (!check_positions("add_positions_bilinear", args)) return;
  ctx.kernels.add_positions_bilinear(ctx.submission(), args);
}

void add_positions_half_pixel(ExecContext& ctx, const AddPositionsArgs& args) {
  if (!check_positions("add_positions_half_pixel", args)) return;
  ctx.kernels.add_positions_half_pixel(ctx.submission(), args);
}

void add_positions_bicubic(ExecContext& ctx, const AddPositionsArgs& args) {
  if (!check_positions("add_positions_bicubic", args)) return;
  ctx.kernels.add_positions_bicubic(ctx.submission(), args);
}

void add_positions_antialiased(ExecContext& ctx, const AddPositionsArgs& args) {
  if (!check_positions("add_positions_antialiased", args)) return;
  ctx.kernels.add_positions_antialiased(ctx.submission(), args);
}

void interpolate_grids(ExecContext& ctx, const InterpolateGridsArgs& args) {
  constexpr const char* kOp = "interpolate_grids";
  check_activation(kOp, "out", args.out, 2);
  const std::int64_t area = args.height * args.width;
  FOVEA_CHECK(args.height >= 1 && args.width >= 1 && args.out_height >= 1 && args.out_width >= 1,
              kInvalidArgument, kOp, ": grids must have sides >= 1, got ", args.height, "x",
              args.width, " and ", args.out_height, "x", args.out_width);
  FOVEA_CHECK(args.out_line_rows >= args.out_width, kInvalidArgument, kOp,
              ": out_line_rows must be >= ", args.out_width, ", got ", args.out_line_rows);
  const std::int64_t out_rows = args.out_height * args.out_line_rows;
  FOVEA_CHECK(args.out.shape[0] % out_rows == 0, kInvalidArgument, kOp, ": ", args.out.shape[0],
              " rows of out are not whole grids of ", out_rows);
  check_tensor(kOp, "x", args.x, args.out.dtype,
               {args.out.shape[0] / out_rows * area, args.out.shape[1]});
  check_disjoint(kOp, "out", args.out, "x", args.x);
  if (args.out.shape[0] == 0) return;
  ctx.kernels.interpolate_grids(ctx.submission(), args);
}

void gather_rows(ExecContext& ctx, const GatherRowsArgs& args) {
  constexpr const char* kOp = "gather_rows";
  check_activation(kOp, "x", args.x, 2);
  check_activation(kOp, "out", args.out, 2);
  const std::int64_t rows = args.out.shape[0];
  check_tensor(kOp, "out", args.out, args.x.dtype, {rows, args.x.shape[1]});
  check_disjoint(kOp, "out", args.out, "x", args.x);
  check_tensor(kOp, "index", args.index, DType::kI32, {rows});
  if (rows == 0) return;
  ctx.kernels.gather_rows(ctx.submission(), args);
}

}  // namespace fovea::ops
