// Memory that runs have grown to, and when it is given back.
#include <gtest/gtest.h>

#include "device/recent_need.h"
#include "graph/harness.h"

namespace fovea {
namespace {

using namespace test;  // NOLINT: the harness is written for these tests

class IdleMemory : public GraphManagerTest {
 protected:
  [[nodiscard]] std::size_t eager_bytes() const { return h.manager.memory().eager; }
  /// A batch that no graph holds.
  [[nodiscard]] Batch large() const { return batch({{1, 40, 40}}); }
  [[nodiscard]] Batch small() const { return batch({{1, 4, 4}}); }
};

TEST_F(IdleMemory, OfEagerRunsIsGivenBackAfter32SubBatchesThatNeededLess) {
  h.expect_right(large());
  const std::size_t grown = eager_bytes();
  EXPECT_GT(grown, 0u);
  for (std::size_t i = 0; i + 1 < RecentNeed::kRuns; ++i) h.expect_right(small());
  EXPECT_EQ(eager_bytes(), grown);
  h.expect_right(small());
  EXPECT_EQ(eager_bytes(), 0u);
  h.expect_right(large());
  EXPECT_EQ(eager_bytes(), grown);
}

TEST_F(IdleMemory, OfEagerRunsStaysWhileSubBatchesNeedHalfOfIt) {
  (void)h.encode_eager(batch({{1, 16, 16}}));
  const std::size_t grown = eager_bytes();
  for (std::size_t i = 0; i < 3 * RecentNeed::kRuns; ++i) {
    (void)h.encode_eager(batch({{1, 14, 14}}));
    ASSERT_EQ(eager_bytes(), grown) << i;
  }
}

TEST_F(IdleMemory, TrimKeepsTheGraphsAndTheirMemory) {
  const std::size_t fresh = h.device->allocated_bytes();
  h.expect_right(large());
  EXPECT_GT(h.device->allocated_bytes(), fresh);
  const GraphMemoryReport before = h.manager.memory();
  h.manager.trim();
  EXPECT_EQ(h.device->allocated_bytes(), fresh);
  EXPECT_EQ(h.manager.memory().graphs(), before.graphs());
  h.expect_right(small());
  EXPECT_EQ(stats().graph_hits, 1);
  h.expect_right(large());
}

TEST(IdleMemoryWithoutGraphs, IsAllGivenBackByTrim) {
  MockHarness h(MockModel{}, small_options());
  const std::size_t fresh = h.device->allocated_bytes();
  h.expect_right(mock_batch(h.model, {{1, 16, 16}, {1, 4, 4}}));
  h.manager.trim();
  EXPECT_EQ(h.device->allocated_bytes(), fresh);
}

}  // namespace
}  // namespace fovea
