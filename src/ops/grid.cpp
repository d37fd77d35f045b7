// Checks of the ops on grids of tokens.
#include "fovea/tower/ops/grid.h"

#include <cmath>

#include "core/check.h"
#include "ops/arg_check.h"
#include "ops/kernels.h"

namespace fovea::ops {

namespace {

void check(const char* op, const GridAttentionArgs& args) {
  FOVEA_CHECK(args.height >= 1 && args.width >= 1 && args.window >= 0, kInvalidArgument, op,
              ": grid must not be empty and window must be >= 0, got ", args.height, "x",
              args.width, " and ", args.window);
  FOVEA_CHECK(args.num_heads > 0 && args.head_dim > 0 && args.head_dim % kHeadDimMultiple == 0,
              kInvalidArgument, op, ": num_heads must be > 0 and head_dim a positive multiple of ",
              kHeadDimMultiple, ", got ", args.num_heads, " and ", args.head_dim);
  FOVEA_CHECK(std::isfinite(args.scale), kInvalidArgument, op, ": scale must be finite, got ",
              args.scale);
  check_activation(op, "qkv", args.qkv, 2);
  const std::int64_t rows = args.qkv.shape[0];
  const std::int64_t channels = args.num_heads * args.head_dim;
  FOVEA_CHECK(rows % (args.height * args.width) == 0, kInvalidArgument, op, ": qkv has ", rows,
              " rows, which are not whole images of ", args.height, "x", args.width);
  check_tensor(op, "qkv", args.qkv, args.qkv.dtype, {rows, 3 * channels});
  check_tensor(op, "pad_qkv", args.pad_qkv, DType::kF32, {3 * channels});
  const std::int64_t side_h = args.window > 0 ? args.window : args.height;
  const std::int64_t side_w = args.window > 0 ? args.window : args.width;
  check_tensor(op, "rel_pos_h", args.rel_pos_h, DType::kF32, {2 * side_h - 1, args.head_dim});
  check_tensor(op, "rel_pos_w", args.rel_pos_w, DType::kF32, {2 * side_w - 1, args.head_dim});
  check_tensor(op, "out", args.out, args.qkv.dtype, {rows, channels});
  check_disjoint(op, "out", args.out, "qkv", args.qkv);
}

}  // namespace

void grid_attention(ExecContext& ctx, const GridAttentionArgs& args) {
  check("grid_attention", args);
  if (args.qkv.shape[0] == 0) return;
  ctx.kernels.grid_attention(ctx.submission(), args);
}

void im2col_3x3(ExecContext& ctx, const Im2colArgs& args) {
  constexpr const char* kOp = "im2col_3x3";
  FOVEA_CHECK(args.height >= 1 && args.width >= 1 && (args.stride == 1 || args.stride == 2),
              kInvalidArgument, kOp, ": grid must not be empty and stride 1 or 2, got ",
              args.height, "x", args.width, " and ", args.stride);
  check_activation(kOp, "x", args.x, 2);
  FOVEA_CHECK(args.x.shape[0] % (args.height * args.width) == 0, kInvalidArgument, kOp, ": x has ",
              args.x.shape[0], " rows, which are not whole images of ", args.height, "x",
              args.width);
  const std::int64_t images = args.x.shape[0] / (args.height * args.width);
  const std::int64_t out_rows =
      ((args.height - 1) / args.stride + 1) * ((args.width - 1) / args.stride + 1);
  check_tensor(kOp, "out", args.out, args.x.dtype, {images * out_rows, 9 * args.x.shape[1]});
  check_disjoint(kOp, "out", args.out, "x", args.x);
  if (args.out.shape[0] == 0) return;
  ctx.kernels.im2col_3x3(ctx.submission(), args);
}

}  // namespace fovea::ops
