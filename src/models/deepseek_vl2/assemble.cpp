// From the rows that views made to their place in an item.
#include "models/common/views/token_grid.h"
#include "models/deepseek_vl2/model.h"

namespace fovea::deepseek_vl2 {

void assemble_part(ExecContext& ctx, const Config& c, const Weights& w, const ItemPart& part,
                   TensorView rows, TensorView out) {
  const std::int64_t side = c.tokens_side();
  const std::int64_t global_rows = side * (side + 1);
  const std::int64_t tile_rows = out.shape[0] - global_rows - 1;
  const TensorView global = row_range(out, c.global_first ? 0 : tile_rows + 1, global_rows);
  const TensorView tiles = row_range(out, c.global_first ? global_rows + 1 : 0, tile_rows);
  const TensorView separator = row_range(out, c.global_first ? global_rows : tile_rows, 1);
  const common::TokenGrid one{.side = side, .newline = w.image_newline};
  const common::TokenGrid all{
      .side = side, .cols = part.plan().grid[2], .newline = w.image_newline};
  for (std::int64_t i = 0; i < part.count; ++i) {
    const std::int64_t view = part.first + i;
    const TensorView from = row_range(rows, i * c.tokens(), c.tokens());
    if (view == 0) {
      common::put_view(ctx, one, 0, from, global);
      common::put_row(ctx, w.view_seperator, separator);
    } else {
      common::put_view(ctx, all, view - 1, from, tiles);
    }
  }
}

}  // namespace fovea::deepseek_vl2
