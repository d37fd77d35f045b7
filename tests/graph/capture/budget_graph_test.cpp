// One recorded forward over shared memory.
#include "graph/capture/budget_graph.h"

#include <gtest/gtest.h>

#include "graph/eager_runner.h"
#include "graph/harness.h"
#include "support/expect_error.h"

namespace fovea {
namespace {

using namespace test;  // NOLINT: the harness is written for these tests

class BudgetGraphTest : public ::testing::Test {
 protected:
  [[nodiscard]] BudgetGraph make_graph(std::int64_t tokens) const {
    return {model, *device, {.budget = tokens}, {.tokens = tokens, .items = 4, .seqs = 4}};
  }
  [[nodiscard]] PathOutput replay(const BudgetGraph& graph) {
    return graph.replay(lane, memory, batch.pointers(), scratch);
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
  const PathOutput output = replay(graph);
  EXPECT_EQ(output.rows.shape, (Shape{4, 32}));
  EXPECT_EQ(output.rows.data, memory.addresses(0).output);
  EXPECT_GT(graph.recording_bytes(), 0u);
}

TEST_F(BudgetGraphTest, TellsOpsWhatIsRecorded) {
  BudgetGraph graph = make_graph(16);
  memory.reserve(0, graph.need());
  EXPECT_EQ(model.forwards_recorded(), 0);
  graph.capture(lane, memory);
  EXPECT_EQ(model.forwards_recorded(), 3) << "two rehearsals and the recording";
  (void)replay(graph);
  (void)EagerRunner(model, lane).run(0, batch.pointers(), scratch);
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
  EXPECT_EQ(replay(small).rows.shape, (Shape{4, 32}));
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
