#pragma once

#include <cstdint>
#include <utility>

#include "ops/cpu/gemm/task.h"

namespace fovea::cpu {

/// The cut of a layer into tasks: rows and panels are split into so many nearly equal parts.
struct TaskShape {
  std::int64_t row_parts = 1;
  std::int64_t panel_parts = 1;
};

/// The cut with the least estimated time of the busiest thread. No result depends on it.
/// @param rows, panels, threads >= 1.
[[nodiscard]] TaskShape choose_task_shape(std::int64_t rows, std::int64_t panels,
                                          const TaskLimits& limits, std::int64_t threads);

/// Part `index` of [0, count) cut into `parts`.
[[nodiscard]] inline std::pair<std::int64_t, std::int64_t> part_of(std::int64_t count,
                                                                   std::int64_t parts,
                                                                   std::int64_t index) {
  return {index * count / parts, (index + 1) * count / parts};
}

/// Rows and panels of one task.
struct TaskPart {
  std::int64_t row;  ///< the first one
  std::int64_t rows;
  std::int64_t panel;  ///< the first one
  std::int64_t panels;

  [[nodiscard]] std::int64_t column() const noexcept { return panel * kPanelColumns; }
};

/// Task `index` of a layer. Neighbouring tasks share weights: all rows of one group of panels come
/// first.
[[nodiscard]] inline TaskPart task_part(std::int64_t rows, std::int64_t panels, TaskShape shape,
                                        std::int64_t index) {
  const auto [row, row_end] = part_of(rows, shape.row_parts, index % shape.row_parts);
  const auto [panel, panel_end] = part_of(panels, shape.panel_parts, index / shape.row_parts);
  return {row, row_end - row, panel, panel_end - panel};
}

}  // namespace fovea::cpu
