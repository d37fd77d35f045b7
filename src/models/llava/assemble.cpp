// From the rows of views to the rows of an image or video.
#include <algorithm>

#include "fovea/tower/ops/patch.h"
#include "fovea/tower/ops/rows.h"
#include "models/common/views/canvas.h"
#include "models/common/views/token_grid.h"
#include "models/llava/model.h"
#include "models/llava/processor.h"

namespace fovea::llava {

namespace {

using common::CanvasRows;

/// The part of a range of `side` rows, number `index` of them, that a window shows.
struct Overlap {
  std::int64_t first = 0;  ///< of the range
  std::int64_t place = 0;  ///< in the window
  std::int64_t count = 0;  ///< of rows, none if not above 0
};

Overlap overlap_of(std::int64_t index, std::int64_t side, std::int64_t begin, std::int64_t length) {
  const std::int64_t from = std::max(index * side, begin);
  const std::int64_t to = std::min((index + 1) * side, begin + length);
  return {.first = from - index * side, .place = from - begin, .count = to - from};
}

/// Copies what a window shows of a view of a canvas.
/// @param rows [side * side, cols]. @param window_rows [window.height * block_rows, cols].
void put_view(ExecContext& ctx, const CanvasRows& c, std::int64_t index, std::int64_t side,
              TensorView rows, TensorView window_rows, std::int64_t block_rows) {
  const Overlap y = overlap_of(index / c.canvas.cols, side, c.window.top, c.window.height);
  const Overlap x = overlap_of(index % c.canvas.cols, side, c.window.left, c.window.width);
  if (y.count <= 0 || x.count <= 0) return;
  ops::copy_row_blocks(ctx,
                       {.x = row_range(rows, y.first * side, y.count * side),
                        .x_block_rows = side,
                        .x_first = x.first,
                        .count = x.count,
                        .out = row_range(window_rows, y.place * block_rows, y.count * block_rows),
                        .out_block_rows = block_rows,
                        .out_first = x.place});
}

/// The views of a canvas, all of them where its rows are shrunk.
/// @param first of them. @param rows theirs. @param out rows of the canvas with newlines.
void put_canvas(ExecContext& ctx, const CanvasRows& c, std::int64_t first, std::int64_t side,
                TensorView rows, TensorView out) {
  const Arena::Scope scope(ctx.arena);
  const std::int64_t line = c.grid.width_px + 1;
  const std::int64_t block_rows = c.is_shrunk() ? c.window.width : line;
  const TensorView window_rows =
      c.is_shrunk() ? ctx.arena.tensor(out.dtype, {c.window.height * c.window.width, out.shape[1]})
                    : out;
  for (std::int64_t i = 0; i < rows.shape[0] / (side * side); ++i) {
    put_view(ctx, c, first + i, side, row_range(rows, i * side * side, side * side), window_rows,
             block_rows);
  }
  if (!c.is_shrunk()) return;
  ops::interpolate_grids(ctx, {.x = window_rows,
                               .height = c.window.height,
                               .width = c.window.width,
                               .out_height = c.grid.height_px,
                               .out_width = c.grid.width_px,
                               .out_line_rows = line,
                               .out = out});
}

void assemble_image(ExecContext& ctx, const Config& config, const Weights& w, const ItemPart& part,
                    TensorView rows, TensorView out) {
  const ItemPlan& plan = part.plan();
  const std::int64_t side = config.tower.view.grid();
  const std::int64_t of_view = side * side;
  const CanvasRows c = common::canvas_rows({plan.source_height_px, plan.source_width_px},
                                           {.cols = plan.grid[2], .rows = plan.grid[1]}, side,
                                           config.max_canvas_views);
  const TensorView canvas = row_range(out, of_view, out.shape[0] - of_view);
  std::int64_t first = part.first;
  if (first == 0) {
    ctx.stream.copy(out.data, rows.data, row_range(rows, 0, of_view).bytes());
    if (canvas.shape[0] > 0) {
      common::put_row(ctx, w.image_newline, canvas, c.grid.width_px + 1, c.grid.width_px);
    }
    rows = row_range(rows, of_view, rows.shape[0] - of_view);
    first = 1;
  }
  put_canvas(ctx, c, first - 1, side, rows, canvas);
}

void assemble_video(ExecContext& ctx, const Config& config, const Weights& w, const ItemPart& part,
                    TensorView rows, TensorView out) {
  const std::int64_t side = config.tower.view.grid();
  const std::int64_t pooled = pooled_side(config.tower.view);
  const std::int64_t of_frame = pooled * pooled;
  ops::interpolate_grids(ctx,
                         {.x = rows,
                          .height = side,
                          .width = side,
                          .out_height = pooled,
                          .out_width = pooled,
                          .out_line_rows = pooled,
                          .out = row_range(out, part.first * of_frame, part.count * of_frame)});
  const bool is_last = part.first + part.count == part.units().count;
  if (is_last) common::put_row(ctx, w.image_newline, row_range(out, out.shape[0] - 1, 1));
}

}  // namespace

void assemble_part(ExecContext& ctx, const Config& config, const Weights& w, const ItemPart& part,
                   TensorView rows, TensorView out) {
  const bool is_image = part.plan().modality == Modality::kImage;
  (is_image ? assemble_image : assemble_video)(ctx, config, w, part, rows, out);
}

}  // namespace fovea::llava
