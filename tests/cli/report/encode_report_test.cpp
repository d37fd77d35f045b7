#include "report/encode_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fovea::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Stats two_paths() {
  Stats stats;
  stats.token_budgets = {272};
  stats.sub_batches = 1;
  stats.paths = {{.name = "global", .replays = 1, .live_rows = 272},
                 {.name = "local", .eager_runs = 1}};
  return stats;
}

TEST(EncodeReport, ItemsReplayedOnAllPathsAreCounted) {
  Stats stats = two_paths();
  stats.graph_hits = 3;
  stats.graph_misses = 1;
  stats.miss_reasons["oversized"] = 1;
  stats.paths[0].padded_rows = 272;
  EXPECT_EQ(graphs_text(stats),
            "3 of 4 items replayed (75.0 %), 1 sub-batch, budgets 272, padding 50.0 %, "
            "1 eager: oversized");
}

TEST(EncodeReport, ItemsReplayedInPartShowWhatEachPathDid) {
  Stats stats = two_paths();
  stats.graph_partial = 1;
  stats.miss_reasons["oversized"] = 1;
  EXPECT_EQ(graphs_text(stats),
            "0 of 1 items replayed (0.0 %), 1 in part (global: 1 replay, local: 1 eager run), "
            "1 sub-batch, budgets 272, padding 0.0 %, 1 eager on some path: oversized");
}

TEST(EncodeReport, BudgetsOfPathsThatHaveTheirOwnAreListedPerPath) {
  Stats stats = two_paths();
  stats.graph_hits = 1;
  stats.token_budgets = {272, 512};
  for (PathStats& path : stats.paths) path.token_budgets = {272, 512};
  EXPECT_THAT(graphs_text(stats), HasSubstr(", budgets 272 512,"));
  stats.paths[0].token_budgets = {272, 544};
  stats.paths[1].token_budgets = {100};
  EXPECT_THAT(graphs_text(stats), HasSubstr(", budgets (global: 272 544, local: 100),"));
}

TEST(EncodeReport, APathMayHaveRunBothWaysOrNotAtAll) {
  Stats stats = two_paths();
  stats.graph_partial = 2;
  stats.paths[1].replays = 2;
  stats.paths.push_back({.name = "idle"});
  EXPECT_THAT(graphs_text(stats),
              HasSubstr("2 in part (global: 1 replay, local: 2 replays and 1 eager run),"));
}

TEST(EncodeReport, SeveralReplicasHaveOneLineEachWithoutTheBudgets) {
  Stats stats = two_paths();
  stats.graph_hits = 1;
  const std::vector<ReplicaStats> one{{.device = "cuda:0", .stats = stats}};
  EXPECT_EQ(replica_lines(one), "");
  const std::vector<ReplicaStats> two{one[0], {.device = "cuda:1", .stats = Stats{}}};
  EXPECT_EQ(replica_lines(two),
            "        cuda:0: 1 of 1 items replayed (100.0 %), 1 sub-batch, padding 0.0 %\n"
            "        cuda:1: 0 of 0 items replayed (0.0 %)\n");
}

/// An image of 10 rows that took 1 ms to read and 2 ms to encode.
Embedding image(const std::string& name) {
  Embedding item;
  item.name = name;
  item.rows = 10;
  item.source_width_px = 640;
  item.source_height_px = 480;
  item.resized_width_px = 64;
  item.resized_height_px = 32;
  item.times.read_ms = 1;
  item.times.encode_ms = 2;
  return item;
}

TEST(EncodeReport, ItemsAreAddedUpUnderARule) {
  const std::string table = items_table(std::vector{image("a.png"), image("b.png")}, {});
  EXPECT_THAT(table, HasSubstr("0  a.png  640x480    64x32     -    10     1.00"));
  EXPECT_THAT(table, HasSubstr("   sum                              20     2.00"));
  EXPECT_THAT(table, Not(HasSubstr("difference")));
}

TEST(EncodeReport, FailedItemsKeepTheirNumberAndCountForNothing) {
  std::vector<Embedding> items{image("a.png"), image("b.png")};
  items[0].rows = 0;
  items[0].error = Error(ErrorCode::kCorruptData, "a.png: broken");
  const std::string table = items_table(items, {});
  EXPECT_THAT(table, HasSubstr("0  a.png   failed\n1  b.png  640x480"));
  EXPECT_THAT(table, HasSubstr("   sum                              10     1.00"));
}

TEST(EncodeReport, DifferencesStandLastAndMayBeMissing) {
  const std::vector<std::optional<double>> differences{1.2e-6, std::nullopt};
  const std::string table = items_table(std::vector{image("a.png"), image("b.png")}, differences);
  EXPECT_THAT(table, HasSubstr("  difference\n"));
  EXPECT_THAT(table, HasSubstr("     1.2e-06\n"));
  EXPECT_THAT(table, HasSubstr("           -\n"));
}

TEST(EncodeReport, VideosShowTheirFramesAndPixelValuesNoSize) {
  Embedding video = image("clip.mp4");
  video.modality = Modality::kVideo;
  video.num_frames = 8;
  video.grid_thw = {{4, 10, 12}};
  Embedding values = image("values");
  values.source_width_px = values.source_height_px = 0;
  const std::string table = items_table(std::vector{video, values}, {});
  EXPECT_THAT(table, HasSubstr("clip.mp4  640x480x8f    64x32  4x10x12    10"));
  EXPECT_THAT(table, HasSubstr("values             -    64x32        -    10"));
}

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
