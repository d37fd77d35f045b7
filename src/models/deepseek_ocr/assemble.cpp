// From the rows that a path made to their place in an item.
#include "fovea/tower/ops/rows.h"
#include "models/deepseek_ocr/model.h"

namespace fovea::deepseek_ocr {

namespace {

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

/// @param index of the tile, row by row of the image, which has `cols` of them in a row.
void put_tile(ExecContext& ctx, const Weights& w, std::int64_t index, std::int64_t cols,
              std::int64_t side, TensorView rows, TensorView out) {
  const std::int64_t row = cols * side + 1;  // tokens of a row of the image and its newline
  const std::int64_t tile_x = index % cols;
  const TensorView band = row_range(out, index / cols * side * row, side * row);
  ops::copy_row_blocks(ctx, {.x = rows,
                             .x_block_rows = side,
                             .count = side,
                             .out = band,
                             .out_block_rows = row,
                             .out_first = tile_x * side});
  if (tile_x == cols - 1) put_row(ctx, w.image_newline, band, row, row - 1);
}

}  // namespace

void assemble_part(ExecContext& ctx, const Weights& w, const Views& views, const ItemPart& part,
                   TensorView rows, TensorView out) {
  if (part.path == kGlobal) {
    const std::int64_t last = out.shape[0] - 1;
    ctx.stream.copy(row_range(out, last - rows.shape[0], rows.shape[0]).data, rows.data,
                    rows.bytes());
    put_row(ctx, w.view_seperator, row_range(out, last, 1), 1, 0);
    return;
  }
  const common::SquareView& tile = views[kLocal];
  for (std::int64_t i = 0; i < part.count; ++i) {
    put_tile(ctx, w, part.first + i, part.plan().grid[2], tile.tokens_side(),
             row_range(rows, i * tile.tokens(), tile.tokens()), out);
  }
}

}  // namespace fovea::deepseek_ocr
