// One recorded forward over shared memory.
#include "graph/capture/budget_graph.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "graph/eager_runner.h"
#include "graph/harness.h"
#include "support/expect_error.h"

namespace fovea {
namespace {

using namespace test;  // NOLINT: the harness is written for these tests

class BudgetGraphTest : public ::testing::Test {
 protected:
  [[nodiscard]] BudgetGraph make_graph(std::int64_t tokens) const {
    const GraphCapacity size{.tokens = tokens, .items = 4, .seqs = 4};
    return {model, *device, {.budget = tokens}, std::span(&size, 1)};
  }
  [[nodiscard]] TensorView replay(const BudgetGraph& graph) {
    return graph.replay(lane, memory, batch.parts(), scratch);
  }

  MockModel model;
  std::unique_ptr<Kernels> kernels = make_cpu_kernels(CpuIsa::kPortable, 1);
  std::unique_ptr<Device> device = make_cpu_device(1, *kernels);
  Lane lane{*device};
  RunMemory memory{lane, 1};
  InputScratch scratch;
  Batch batch = mock_batch(model, {{1, 4, 4}});
};

TEST_F(BudgetGraphTest, ReplaysIntoAPrefixOfTheOutput) {
  BudgetGraph graph = make_graph(16);
  memory.reserve(0, graph.need());
  graph.capture(lane, memory);
  const TensorView rows = replay(graph);
  EXPECT_EQ(rows.shape, (Shape{4, 32}));
  EXPECT_EQ(rows.data, memory.addresses(0).output);
  EXPECT_GT(graph.recording_bytes(), 0u);
}

/// A graph of 64 tokens, recorded for 16, too.
class GraphOfTwoSizes : public BudgetGraphTest {
 protected:
  static constexpr std::array kSizes{GraphCapacity{.tokens = 16, .items = 3, .seqs = 3},
                                     GraphCapacity{.tokens = 64, .items = 4, .seqs = 4}};

  /// Tokens that the replay of these items computes.
  [[nodiscard]] double tokens_run(MockOptions options, const Grid& grid, std::size_t count = 1,
                                  bool complete = true) {
    options.clock_ms = std::make_shared<double>(0);
    const MockModel timed(options);
    BudgetGraph graph(timed, *device, {.budget = 64}, kSizes);
    memory.reserve(0, graph.need());
    graph.capture(lane, memory);
    EXPECT_FALSE(graph.is_complete());
    EXPECT_EQ(complete && graph.record_next(lane, memory), complete);
    EXPECT_EQ(graph.is_complete(), complete);
    const Batch items = mock_batch(timed, std::vector<Grid>(count, grid));
    *options.clock_ms = 0;
    EXPECT_EQ(graph.replay(lane, memory, items.parts(), scratch).shape[0],
              static_cast<std::int64_t>(count) * grid[1] * grid[2] / 4);
    return *options.clock_ms;
  }
};

TEST_F(GraphOfTwoSizes, HasTheLargerOneAsItsCapacity) {
  const BudgetGraph graph(model, *device, {.budget = 64}, kSizes);
  EXPECT_EQ(graph.capacity(), kSizes.back());
  EXPECT_EQ(graph.need().total(), make_graph(64).need().total());
}

TEST_F(GraphOfTwoSizes, RunsTheSmallerOneForWhatFits) {
  EXPECT_EQ(tokens_run({}, {1, 8, 8}), 16);
  EXPECT_EQ(tokens_run({}, {1, 8, 10}), 64) << "20 tokens";
  EXPECT_EQ(tokens_run({}, {1, 4, 4}, 4), 64) << "16 tokens of 4 items";
}

TEST_F(GraphOfTwoSizes, RunsTheLargerOneUntilTheSmallerIsRecorded) {
  EXPECT_EQ(tokens_run({}, {1, 8, 8}, 1, false), 64);
}

TEST_F(GraphOfTwoSizes, HasNoMoreThanTwo) {
  BudgetGraph graph(model, *device, {.budget = 64}, kSizes);
  memory.reserve(0, graph.need());
  graph.capture(lane, memory);
  EXPECT_TRUE(graph.record_next(lane, memory));
  EXPECT_FALSE(graph.record_next(lane, memory));
  graph.capture(lane, memory);
  EXPECT_FALSE(graph.is_complete()) << "recorded anew";
}

TEST_F(GraphOfTwoSizes, RunsTheLargerOneIfAnInputOfTheSmallerIsTooSmall) {
  EXPECT_EQ(tokens_run({.narrow_rows_by = 8, .narrow_only_at = 3}, {1, 8, 8}), 64);
}

TEST_F(BudgetGraphTest, TellsOpsWhatIsRecorded) {
  BudgetGraph graph = make_graph(16);
  memory.reserve(0, graph.need());
  EXPECT_EQ(model.forwards_recorded(), 0);
  graph.capture(lane, memory);
  EXPECT_EQ(model.forwards_recorded(), 3) << "two rehearsals and the recording";
  (void)replay(graph);
  (void)EagerRunner(model, lane).run(0, batch.parts(), scratch);
  EXPECT_EQ(model.forwards_recorded(), 3);
}

TEST_F(BudgetGraphTest, RefusesToReplayOverMemoryThatHasMoved) {
  BudgetGraph small = make_graph(16);
  memory.reserve(0, small.need());
  small.capture(lane, memory);
  const Buffer in_the_way = device->allocate(1 << 20);
  memory.reserve(0, make_graph(4096).need());
  expect_error(ErrorCode::kInternal, "memory of the graph of budget 16 has moved since capture",
               [&] { (void)replay(small); });
  small.capture(lane, memory);
  EXPECT_EQ(replay(small).shape, (Shape{4, 32}));
}

TEST_F(BudgetGraphTest, RefusesToReplayBeforeCaptureAndToCaptureWithoutRoom) {
  BudgetGraph graph = make_graph(16);
  expect_error(ErrorCode::kInternal, "has moved since capture", [&] { (void)replay(graph); });
  expect_error(ErrorCode::kInternal, "needs more memory than is reserved",
               [&] { graph.capture(lane, memory); });
}

TEST_F(BudgetGraphTest, MemoryIsReservedOnceAndGivenBack) {
  const RunMemory::Need need = make_graph(64).need();
  memory.reserve(0, need);
  EXPECT_TRUE(memory.holds(0, need));
  EXPECT_TRUE(memory.holds(0, make_graph(16).need()));
  EXPECT_FALSE(memory.holds(0, make_graph(65).need()));
  EXPECT_EQ(device->allocated_bytes(), need.arena + need.input + need.output);
  memory.clear();
  EXPECT_EQ(device->allocated_bytes(), 0u);
}

}  // namespace
}  // namespace fovea
