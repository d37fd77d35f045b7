// From the outputs of both paths to the rows of an item.
#include "models/deepseek_ocr/model.h"

#include "fovea/tower/ops/rows.h"
#include "models/deepseek_ocr/processor.h"

namespace fovea::deepseek_ocr {

namespace {

/// The first `count` rows of `rows`, which then begins after them.
TensorView take_rows(TensorView& rows, std::int64_t count) {
  const TensorView taken = row_range(rows, 0, count);
  rows = row_range(rows, count, rows.shape[0] - count);
  return taken;
}

/// Writes `row` as one row of every block of `block_rows` rows. @param row [1, n_embed].
void put_row(ExecContext& ctx, const Tensor& row, TensorView out, std::int64_t block_rows,
             std::int64_t first) {
  ops::copy_row_blocks(ctx, {.x = row.view(),
                             .x_block_rows = 0,
                             .count = 1,
                             .out = out,
                             .out_block_rows = block_rows,
                             .out_first = first});
}

void assemble_tiles(ExecContext& ctx, const Weights& w, const common::SquareView& tile,
                    common::Tiling tiling, TensorView& local, TensorView& rows) {
  const std::int64_t side = tile.tokens_side();
  const std::int64_t row = tiling.cols * side + 1;  // tokens of a row of the image and its newline
  for (std::int64_t tile_y = 0; tile_y < tiling.rows; ++tile_y) {
    const TensorView band = take_rows(rows, side * row);
    for (std::int64_t tile_x = 0; tile_x < tiling.cols; ++tile_x) {
      ops::copy_row_blocks(ctx, {.x = take_rows(local, side * side),
                                 .x_block_rows = side,
                                 .count = side,
                                 .out = band,
                                 .out_block_rows = row,
                                 .out_first = tile_x * side});
    }
    put_row(ctx, w.image_newline, band, row, row - 1);
  }
}

}  // namespace

void assemble_item(ExecContext& ctx, const Weights& w, const Views& views, const ItemPlan& plan,
                   PathRows& paths, TensorView rows) {
  if (const auto tiling = tiling_of(plan)) {
    assemble_tiles(ctx, w, views[kLocal], *tiling, paths.local, rows);
  }
  const TensorView global = take_rows(paths.global, plan.spec.path_tokens[kGlobal]);
  ctx.stream.copy(take_rows(rows, global.shape[0]).data, global.data, global.bytes());
  put_row(ctx, w.view_seperator, take_rows(rows, 1), 1, 0);
}

}  // namespace fovea::deepseek_ocr
