// How a layer is cut into tasks: without gaps and overlaps, within the limits of the kernel.
#include "ops/cpu/gemm/task_shape.h"

#include <gtest/gtest.h>

#include <vector>

namespace fovea::cpu {
namespace {

constexpr TaskLimits kLimits{.tile_rows = 14, .rows = 512, .panels = 32};

TEST(TaskShape, CoversEveryRowOfEveryPanelOnce) {
  for (const TaskShape shape : {TaskShape{1, 1}, TaskShape{3, 2}, TaskShape{5, 7}}) {
    constexpr std::int64_t kRows = 29;
    constexpr std::int64_t kPanels = 11;
    std::vector<int> times(kRows * kPanels, 0);
    for (std::int64_t task = 0; task < shape.row_parts * shape.panel_parts; ++task) {
      const TaskPart part = task_part(kRows, kPanels, shape, task);
      EXPECT_EQ(part.column(), part.panel * kPanelColumns);
      for (std::int64_t row = part.row; row < part.row + part.rows; ++row) {
        for (std::int64_t panel = part.panel; panel < part.panel + part.panels; ++panel) {
          ++times[static_cast<std::size_t>(row * kPanels + panel)];
        }
      }
    }
    EXPECT_EQ(times, std::vector<int>(kRows * kPanels, 1));
  }
}

TEST(TaskShape, LetsNeighbouringTasksShareWeights) {
  constexpr TaskShape kShape{3, 2};
  for (const std::int64_t task : {0, 1, 2}) {
    EXPECT_EQ(task_part(30, 10, kShape, task).panel, 0) << task;
    EXPECT_EQ(task_part(30, 10, kShape, task + 3).panel, 5) << task;
  }
}

TEST(TaskShape, StaysWithinTheLimitsOfTheKernel) {
  for (const std::int64_t rows : {1, 13, 512, 513, 5000}) {
    for (const std::int64_t panels : {1, 31, 32, 33, 400}) {
      for (const std::int64_t threads : {1, 2, 48}) {
        const TaskShape shape = choose_task_shape(rows, panels, kLimits, threads);
        for (std::int64_t task = 0; task < shape.row_parts * shape.panel_parts; ++task) {
          const TaskPart part = task_part(rows, panels, shape, task);
          EXPECT_GE(part.rows, 1);
          EXPECT_LE(part.rows, kLimits.rows);
          EXPECT_GE(part.panels, 1);
          EXPECT_LE(part.panels, kLimits.panels);
        }
      }
    }
  }
}

TEST(TaskShape, GivesEveryThreadWork) {
  for (const std::int64_t threads : {2, 8, 32}) {
    const TaskShape shape = choose_task_shape(1024, 96, kLimits, threads);
    EXPECT_GE(shape.row_parts * shape.panel_parts, threads);
  }
}

TEST(TaskShape, DoesNotCutWhatOneThreadMultipliesAtOnce) {
  const TaskShape shape = choose_task_shape(14, 32, kLimits, 1);
  EXPECT_EQ(shape.row_parts, 1);
  EXPECT_EQ(shape.panel_parts, 1);
}

}  // namespace
}  // namespace fovea::cpu
