// Views laid out as the token grid of an image.
#include "models/common/views/token_grid.h"

#include "fovea/tower/ops/rows.h"

namespace fovea::common {

void put_row(ExecContext& ctx, const Tensor& row, TensorView out, std::int64_t block_rows,
             std::int64_t first) {
  ops::copy_row_blocks(ctx, {.x = row.view(),
                             .x_block_rows = 0,
                             .count = 1,
                             .out = out,
                             .out_block_rows = block_rows,
                             .out_first = first});
}

void put_view(ExecContext& ctx, const TokenGrid& grid, std::int64_t index, TensorView rows,
              TensorView out) {
  const std::int64_t side = grid.side;
  const std::int64_t row = grid.cols * side + 1;  // tokens of a row of the image and its newline
  const std::int64_t col = index % grid.cols;
  const TensorView band = row_range(out, index / grid.cols * side * row, side * row);
  ops::copy_row_blocks(ctx, {.x = rows,
                             .x_block_rows = side,
                             .count = side,
                             .out = band,
                             .out_block_rows = row,
                             .out_first = col * side});
  if (col == grid.cols - 1) put_row(ctx, grid.newline, band, row, row - 1);
}

}  // namespace fovea::common
