// Two towers: which of them replay, which run eagerly, and that the rows are the same whatever was
// chosen. Encoder graph specification, sections 3.1, 5.2 and 6.6.
#include <gtest/gtest.h>

#include "graph/harness.h"
#include "graph/packing.h"
#include "support/expect_error.h"
#include "support/property.h"

namespace fovea {
namespace {

using namespace test;  // NOLINT: the harness is written for these tests

/// Budgets up to `top`, as inferred.
GraphManagerOptions options_for(std::int64_t max_items = 8) {
  GraphManagerOptions options;
  options.user.encoder_cudagraph_max_vision_items_per_batch = max_items;
  return options;
}

class DualPathTest : public ::testing::Test {
 protected:
  DualPathTest() { h.manager.capture(); }
  [[nodiscard]] Stats stats() const { return h.manager.stats(); }
  [[nodiscard]] const PathStats& path(std::size_t index) {
    last_ = stats();
    return last_.paths[index];
  }

  // global [272, 544], local [0, 100, 200, 400, 544]
  DualHarness h{DualModel(544), options_for()};

 private:
  Stats last_;
};

TEST_F(DualPathTest, BudgetsFollowTheUnitsOfThePaths) {
  using List = std::vector<std::int64_t>;
  EXPECT_EQ(h.manager.config().path_budgets[0], (List{272, 544}));
  EXPECT_EQ(h.manager.config().path_budgets[1], (List{0, 100, 200, 400, 544}));
  EXPECT_EQ(stats().num_budgets, 6);
}

TEST_F(DualPathTest, ItemsWithoutTilesReplayThePageAlone) {
  const Batch plain({h.model.make_crop(1, 1, 1)});
  EXPECT_EQ(h.encode(plain)[0].size(), 273u * DualModel::kColumns);
  h.expect_right(plain);
  EXPECT_EQ(path(0).replays, 2);
  EXPECT_EQ(path(1).replays, 0);  // not launched
  EXPECT_EQ(path(1).eager_runs, 0);
  EXPECT_EQ(stats().graph_hits, 2);
}

TEST_F(DualPathTest, OversizedTilesRunEagerlyBesideTheReplayedPage) {
  h.expect_right(Batch({h.model.make_crop(2, 3, 1)}));  // 600 local tokens
  EXPECT_EQ(path(0).replays, 1);
  EXPECT_EQ(path(1).eager_runs, 1);
  EXPECT_EQ(stats().graph_partial, 1);
  EXPECT_EQ(stats().miss_reasons.at("oversized"), 1);
}

TEST_F(DualPathTest, AnOversizedPageRunsEagerlyBesideReplayedTiles) {
  h.expect_right(Batch({h.model.make_plain(600, 300, 1)}));
  EXPECT_EQ(path(0).eager_runs, 1);
  EXPECT_EQ(path(1).replays, 1);
  EXPECT_EQ(path(1).padded_rows, 100);
  EXPECT_EQ(stats().graph_partial, 1);
}

TEST_F(DualPathTest, GlobalEagerWithoutLocalIsAMiss) {
  h.expect_right(Batch({h.model.make_plain(600, 0, 1)}));
  EXPECT_EQ(stats().graph_misses, 1);
  EXPECT_EQ(path(1).eager_runs, 0);
}

TEST_F(DualPathTest, BothPathsMayRunEagerly) {
  DualHarness none{DualModel(544), options_for()};  // nothing captured
  const Batch two({none.model.make_crop(2, 2, 1), none.model.make_crop(1, 2, 2)});
  const auto rows = none.encode(two);
  EXPECT_EQ(rows[0].size(), (272u + 1 + 400 + 20) * DualModel::kColumns);
  EXPECT_EQ(rows[1].size(), (272u + 1 + 200 + 20) * DualModel::kColumns);
  none.expect_right(two);
  for (const PreparedItem& item : two.items()) none.expect_right(Batch({item}));
  EXPECT_EQ(none.manager.stats().graph_hits, 0);

  h.expect_right(Batch({h.model.make_plain(600, 500, 3)}));  // oversized on the global path only
  h.expect_right(Batch({h.model.make_plain(600, 600, 3)}));  // on both
  EXPECT_EQ(stats().graph_misses, 1);
  EXPECT_EQ(stats().graph_partial, 1);
}

TEST_F(DualPathTest, TilesNewlinesPageAndSeparatorFollowEachOther) {
  const Batch tiled({h.model.make_crop(2, 3, 5)});
  const Rows rows = h.encode(tiled)[0];
  ASSERT_EQ(rows.size(), 903u * DualModel::kColumns);
  EXPECT_TRUE(same_bits(rows, h.model.reference(tiled.items()[0])));
  const auto row = [&](std::size_t index) {
    const auto start = rows.begin() + static_cast<std::ptrdiff_t>(index * DualModel::kColumns);
    return Rows(start, start + DualModel::kColumns);
  };
  // 30 grid rows of 20 tokens and a newline, then 272 rows of the page, then the separator.
  for (std::size_t line = 1; line < 30; ++line) EXPECT_EQ(row(21 * line + 20), row(20)) << line;
  EXPECT_NE(row(902), row(20));
  // Token (0, 10) belongs to the second tile: input row 100 of the local path.
  const auto* const pixels = reinterpret_cast<const float*>(tiled.items()[0].pixels.data());
  const float* const source = pixels + (272 + 100) * DualModel::kColumns;
  EXPECT_EQ(row(10)[0], source[0] * -2.0f + 0.5f * source[1]);
}

TEST_F(DualPathTest, ItemsOnTwoPathsCountOnce) {
  DualHarness wide{DualModel(2176), options_for()};
  wide.manager.capture();
  wide.expect_right(Batch({wide.model.make_crop(2, 2, 1), wide.model.make_crop(2, 2, 2)}));
  const Stats s = wide.manager.stats();
  EXPECT_EQ(s.graph_hits, 2);
  EXPECT_EQ(s.hit_rate(), 1.0);
}

TEST_F(DualPathTest, ItemsCountByTheirOwnPaths) {
  GraphManagerOptions options = options_for();
  options.measure = true;
  options.clock_ms = [] { return 0.0; };  // all that is measured ties
  const auto slower_at = [&](PathId path, std::int64_t budget) {
    const GraphConfig& config = h.manager.config();
    options.stored_times.push_back(
        {.key = {.path = path, .budget = budget},
         .replay_ms = 2,
         .eager_ms = 1,
         .tokens = budget,
         .capacity = {.tokens = budget, .items = config.max_items, .seqs = config.max_seqs}});
  };
  slower_at(0, 544);
  slower_at(1, 400);
  DualHarness own{DualModel(544), options};
  own.manager.capture();
  // The tiles run eagerly, which is nothing to the item that has none.
  own.expect_right(Batch({own.model.make_plain(136, 400, 1), own.model.make_plain(136, 0, 2)}));
  Stats s = own.manager.stats();
  EXPECT_EQ(s.sub_batches, 1);
  EXPECT_EQ(s.graph_hits, 1);
  EXPECT_EQ(s.graph_partial, 1);
  EXPECT_EQ(s.miss_reasons.at("slower"), 1);
  // Now the pages do; replayed tiles are nothing to the item that has none.
  own.expect_right(Batch({own.model.make_plain(272, 100, 3), own.model.make_plain(272, 0, 4)}));
  s = own.manager.stats();
  EXPECT_EQ(s.sub_batches, 2);
  EXPECT_EQ(s.graph_hits, 1);
  EXPECT_EQ(s.graph_partial, 2);
  EXPECT_EQ(s.graph_misses, 1);
  EXPECT_EQ(s.miss_reasons.at("slower"), 3);
}

TEST_F(DualPathTest, ReplaysCountItemsWithTokensOnThePath) {
  h.expect_right(Batch({h.model.make_crop(2, 2, 1), h.model.make_crop(1, 1, 2)}));
  EXPECT_EQ(stats().graph_hits, 2);
  EXPECT_EQ(path(0).replayed_items, 2);
  EXPECT_EQ(path(1).replayed_items, 1);
  EXPECT_EQ(path(1).live_rows, 400);
}

TEST_F(DualPathTest, PoisonedMemoryDoesNotShow) {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    h.manager.fill_memory_with_nan();
    h.expect_right(Batch({h.model.make_crop(2, 2, seed), h.model.make_crop(1, 1, seed + 9)}));
    h.expect_right(Batch({h.model.make_crop(2, 3, seed)}));
  }
}

TEST(DualPath, CapturesBothGraphsOfASubBatchOnDemand) {
  GraphManagerOptions options = options_for();
  options.missing = MissingGraph::kCapture;
  DualHarness h{DualModel(2176), options};
  // The local graph of the second batch needs more memory than there is; the global graph, which
  // the same sub-batch uses, must be recorded on the new memory as well.
  for (const std::int64_t tiles : {1, 2, 3, 2}) {
    h.expect_right(Batch({h.model.make_crop(tiles, tiles, 1)}));
  }
  EXPECT_EQ(h.manager.stats().graph_hits, 4);
  EXPECT_EQ(h.manager.stats().graph_misses + h.manager.stats().graph_partial, 0);
}

TEST(DualPath, UnreachableBudgetsAreNotCaptured) {
  DualHarness h{DualModel(13824), options_for(8)};
  EXPECT_EQ(h.manager.config().path_budgets[0].back(), 2176);  // 8 pages
}

TEST(DualPath, PlanEqualsWhatExecuteDoes) {
  GraphManagerOptions options = options_for(50);
  options.max_num_batched_tokens = 13824;
  DualHarness h{DualModel(13824), options};
  std::vector<PreparedItem> items;
  std::vector<ItemSpec> specs;
  for (int i = 0; i < 20; ++i) {
    items.push_back(h.model.make_crop(3, 3, static_cast<std::uint64_t>(i)));
    specs.push_back(items.back().plan.spec);
  }
  const Packing plan = plan_packing(h.manager.config(), specs, PackingPolicy::kGreedy);
  ASSERT_EQ(plan.batches.size(), 2u);
  EXPECT_EQ(plan.batches[0].count, 15);
  h.manager.capture();
  h.expect_right(Batch(std::move(items)));
  EXPECT_EQ(h.manager.stats().sub_batches, 2);
  EXPECT_EQ(h.manager.stats().graph_hits, 20);
}

}  // namespace
}  // namespace fovea
