// From the rows that a path made to their place in an item.
#include "models/common/views/token_grid.h"
#include "models/deepseek_ocr/model.h"

namespace fovea::deepseek_ocr {

void assemble_part(ExecContext& ctx, const Weights& w, const Views& views, const ItemPart& part,
                   TensorView rows, TensorView out) {
  if (part.path == kGlobal) {
    const std::int64_t last = out.shape[0] - 1;
    ctx.stream.copy(row_range(out, last - rows.shape[0], rows.shape[0]).data, rows.data,
                    rows.bytes());
    common::put_row(ctx, w.view_seperator, row_range(out, last, 1));
    return;
  }
  const common::SquareView& tile = views[kLocal];
  const common::TokenGrid grid{
      .side = tile.tokens_side(), .cols = part.plan().grid[2], .newline = w.image_newline};
  for (std::int64_t i = 0; i < part.count; ++i) {
    common::put_view(ctx, grid, part.first + i, row_range(rows, i * tile.tokens(), tile.tokens()),
                     out);
  }
}

}  // namespace fovea::deepseek_ocr
