#pragma once

#include <cstdint>
#include <utility>

namespace fovea::cpu {

/// How a layer is cut: rows and panels are split into so many nearly equal parts.
struct TaskShape {
  std::int64_t row_parts = 1;
  std::int64_t panel_parts = 1;
};

/// What bounds a task.
struct TaskLimits {
  std::int64_t tile_rows;  ///< rows that the micro-kernel computes at once
  std::int64_t rows;       ///< most rows of a task
  std::int64_t panels;     ///< most panels of a task
};

/// The cut with the least estimated time of the busiest thread. No result depends on it.
/// @param rows, panels, threads >= 1.
[[nodiscard]] TaskShape choose_task_shape(std::int64_t rows, std::int64_t panels,
                                          const TaskLimits& limits, std::int64_t threads);

[[nodiscard]] inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// Part `index` of [0, count) cut into `parts`.
[[nodiscard]] inline std::pair<std::int64_t, std::int64_t> part_of(std::int64_t count,
                                                                   std::int64_t parts,
                                                                   std::int64_t index) {
  return {index * count / parts, (index + 1) * count / parts};
}

}  // namespace fovea::cpu
