// Cuts a GEMM into tasks.
#include "ops/cpu/gemm/task_shape.h"

#include <algorithm>
#include <limits>

#include "ops/cpu/rowwise/row_loop.h"

namespace fovea::cpu {

/// Time is counted in multiply-adds per value of k. A task of r rows and c columns takes r c for
/// the product, r * kRowCost to copy its rows, c * kColumnCost to widen and fetch its weights
/// (Zen 5: tasks of 2, 4, 8, 16 panels behave as if every row had 11 to 14 columns more, tasks of
/// 14 and 64 rows as if there were 2 rows more).
TaskShape choose_task_shape(std::int64_t rows, std::int64_t panels, const TaskLimits& limits,
                            std::int64_t threads) {
  constexpr std::int64_t kRowCost = 16;
  constexpr std::int64_t kColumnCost = 3;
  constexpr std::int64_t kRowPartsTried = 8;
  const std::int64_t fewest = ceil_div(rows, limits.rows);
  const std::int64_t most = std::min(ceil_div(rows, limits.tile_rows), fewest + kRowPartsTried - 1);
  TaskShape best;
  std::int64_t best_cost = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t row_parts = fewest; row_parts <= most; ++row_parts) {
    const std::int64_t task_rows = ceil_div(rows, row_parts);
    for (std::int64_t task_panels = std::min(panels, limits.panels); task_panels >= 1;
         --task_panels) {
      const std::int64_t panel_parts = ceil_div(panels, task_panels);
      const std::int64_t columns = task_panels * kPanelColumns;
      const std::int64_t cost = ceil_div(row_parts * panel_parts, threads) *
                                (task_rows * (columns + kRowCost) + columns * kColumnCost);
      if (cost < best_cost) {
        best_cost = cost;
        best = {row_parts, panel_parts};
      }
    }
  }
  return best;
}

}  // namespace fovea::cpu
