#include "report/graph_counts.h"

#include <gtest/gtest.h>

namespace fovea::cli {
namespace {

TEST(GraphCounts, AreDifferencesOfCounters) {
  Stats before;
  before.graph_hits = 3;
  before.sub_batches = 2;
  before.paths = {{.name = "a", .live_rows = 10, .padded_rows = 6},
                  {.name = "b", .live_rows = 1, .padded_rows = 1}};
  Stats after = before;
  after.graph_hits = 5;
  after.graph_partial = 1;
  after.graph_misses = 1;
  after.sub_batches = 4;
  after.paths[0].live_rows = 40;
  after.paths[1].padded_rows = 11;
  GraphCounts counts = counts_between(before, after);
  EXPECT_EQ(counts.hits, 2);
  EXPECT_EQ(counts.encoder_calls, 2);
  EXPECT_DOUBLE_EQ(counts.hit_rate(), 0.5);
  EXPECT_DOUBLE_EQ(counts.partial_rate(), 0.25);
  EXPECT_DOUBLE_EQ(counts.padding(), 0.25);
  counts += counts;
  EXPECT_EQ(counts.live_rows, 60);
  EXPECT_EQ(counts.partial, 2);
}

TEST(GraphCounts, SharesOfNothingAreZero) {
  EXPECT_EQ(GraphCounts{}.hit_rate(), 0);
  EXPECT_EQ(GraphCounts{}.partial_rate(), 0);
  EXPECT_EQ(GraphCounts{}.padding(), 0);
}

}  // namespace
}  // namespace fovea::cli
