// Attention of a team, of copies between members and the attention of one device: for backends, and
// heads, that have no way of their own.
#include "fovea/tower/device/team.h"
#include "ops/kernels.h"
#include "ops/steps.h"

namespace fovea::ops {

namespace {

/// Copies rows [0, rows) of `width` columns of `from`, from column `from_column` on, to `to`, from
/// its row `to_row` and column `to_column` on. Tensors are of rank 2 and one dtype.
struct ColumnCopy {
  ConstTensorView from;
  std::int64_t from_row = 0;
  std::int64_t from_column = 0;
  TensorView to;
  std::int64_t to_row = 0;
  std::int64_t to_column = 0;
  std::int64_t rows = 0;
  std::int64_t width = 0;
};

void copy_columns(Stream& stream, const ColumnCopy& copy) {
  const std::size_t bytes = size_of(copy.to.dtype);
  const auto offset = [&](const Shape& shape, std::int64_t row, std::int64_t column) {
    return static_cast<std::size_t>(row * shape[1] + column) * bytes;
  };
  stream.copy_rows(
      {.from = copy.from.data + offset(copy.from.shape, copy.from_row, copy.from_column),
       .from_dtype = copy.from.dtype,
       .from_stride = offset(copy.from.shape, 1, 0),
       .to = copy.to.data + offset(copy.to.shape, copy.to_row, copy.to_column),
       .to_dtype = copy.to.dtype,
       .to_stride = offset(copy.to.shape, 1, 0),
       .rows = copy.rows,
       .width = copy.width});
}

}  // namespace

void attend_in_team(ExecContext& ctx, const AttentionArgs& args) {
  const Team& team = *ctx.team;
  const std::int64_t rows = args.qkv.shape[0];
  const std::int64_t all_rows = ctx.all_rows(rows);
  const std::int64_t width = args.num_heads * args.head_dim;
  const std::int64_t own_width = width / team.size;  // of the heads of a member
  const Arena::Scope scope(ctx.arena);
  const TensorView qkv = ctx.arena.tensor(args.qkv.dtype, {all_rows, 3 * own_width});
  const TensorView mixed = ctx.arena.tensor(args.out.dtype, {all_rows, own_width});

  ctx.stream.meet(team);  // nobody has other use for this memory any more
  for (int member = 0; member < team.size; ++member) {
    TensorView theirs = qkv;
    theirs.data = team.at(member, qkv.data);
    for (std::int64_t part = 0; part < 3; ++part) {
      copy_columns(ctx.stream, {.from = args.qkv,
                                .from_column = part * width + member * own_width,
                                .to = theirs,
                                .to_row = team.rank * rows,
                                .to_column = part * own_width,
                                .rows = rows,
                                .width = own_width});
    }
  }
  ctx.stream.meet(team);
  Sequences sequences = args.sequences;
  sequences.rows = {};  // those here are of this member alone
  ctx.kernels.attention({ctx.stream, ctx.arena, ctx.is_recorded, nullptr},
                        {.qkv = qkv,
                         .sequences = sequences,
                         .num_heads = args.num_heads / team.size,
                         .head_dim = args.head_dim,
                         .scale = args.scale,
                         .out = mixed,
                         .projection_dtype = args.projection_dtype});
  for (int member = 0; member < team.size; ++member) {
    TensorView theirs = args.out;
    theirs.data = team.at(member, args.out.data);
    copy_columns(ctx.stream, {.from = mixed,
                              .from_row = member * rows,
                              .to = theirs,
                              .to_column = team.rank * own_width,
                              .rows = rows,
                              .width = own_width});
  }
  ctx.stream.meet(team);
}

}  // namespace fovea::ops
