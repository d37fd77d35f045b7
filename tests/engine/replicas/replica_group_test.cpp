// The replicas of an engine together.
#include "engine/replicas/replica_group.h"

#include <gtest/gtest.h>

#include <vector>

#include "support/expect_error.h"

namespace fovea {
namespace {

TEST(ReplicaGroup, CountersOfReplicasAddUp) {
  Stats one;
  one.graph_hits = 3;
  one.num_budgets = 2;
  one.token_budgets = {16, 64};
  one.sub_batches = 2;
  one.miss_reasons["frames"] = 1;
  one.paths.push_back({.name = "default", .replays = 2, .live_rows = 30, .padded_rows = 2});
  one.capture_seconds = 0.5;
  one.graph_bytes = 100;
  Stats two = one;
  two.capture_seconds = 0.75;
  two.graph_partial = 4;
  two.graph_misses = 5;
  two.skipped = 6;
  two.miss_reasons["oversized"] = 5;
  two.paths[0].eager_runs = 7;
  two.paths[0].replayed_items = 3;
  const std::vector<ReplicaStats> replicas{{"cuda:0", one}, {"cuda:1", two}};
  const Stats all = sum(replicas);
  EXPECT_EQ(all.graph_hits, 6);
  EXPECT_EQ(all.graph_partial, 4);
  EXPECT_EQ(all.graph_misses, 5);
  EXPECT_EQ(all.skipped, 6);
  EXPECT_EQ(all.num_budgets, 4);
  EXPECT_EQ(all.token_budgets, (std::vector<std::int64_t>{16, 64}));
  EXPECT_EQ(all.sub_batches, 4);
  EXPECT_EQ(all.miss_reasons.at("frames"), 2);
  EXPECT_EQ(all.miss_reasons.at("oversized"), 5);
  ASSERT_EQ(all.paths.size(), 1u);
  EXPECT_EQ(all.paths[0].replays, 4);
  EXPECT_EQ(all.paths[0].live_rows, 60);
  EXPECT_EQ(all.paths[0].padded_rows, 4);
  EXPECT_EQ(all.paths[0].eager_runs, 7);
  EXPECT_EQ(all.paths[0].replayed_items, 3);
  EXPECT_EQ(all.capture_seconds, 0.75);  // side by side
  EXPECT_EQ(all.graph_bytes, 200);
}

TEST(ReplicaGroup, AGroupNeedsAReplica) {
  test::expect_error(ErrorCode::kInvalidArgument, "at least 1",
                     [] { const ReplicaGroup group({}); });
}

}  // namespace
}  // namespace fovea
