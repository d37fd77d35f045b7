// Capture, packing, replay, fallback and order, on the model "M" of the encoder graph
// specification, section 12: budgets [16, 64], at most 4 items.
#include "fovea/tower/graph/graph_manager.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <thread>
#include <type_traits>

#include "core/check.h"
#include "graph/harness.h"
#include "graph/recording_log.h"
#include "support/expect_error.h"
#include "support/property.h"

namespace fovea {
namespace {

using namespace test;  // NOLINT: the harness is written for these tests

// --- execution ---

TEST_F(GraphManagerTest, EveryReplayedItemIsAHit) {
  EXPECT_EQ(h.encode(batch({{1, 4, 4}, {1, 4, 4}})).size(), 2u);
  EXPECT_EQ(stats().graph_hits, 2);
}

TEST_F(GraphManagerTest, ItemsOfDifferentSizesHaveTheirOwnRows) {
  const auto rows = h.encode(batch({{1, 4, 4}, {1, 8, 8}}));
  EXPECT_EQ(rows[0].size(), 4u * 32u);
  EXPECT_EQ(rows[1].size(), 16u * 32u);
}

TEST_F(GraphManagerTest, OversizedItemsRunEagerly) {
  const auto rows = h.encode(batch({{1, 18, 18}}));
  EXPECT_EQ(rows[0].size(), 81u * 32u);
  EXPECT_EQ(stats().graph_misses, 1);
  EXPECT_EQ(stats().miss_reasons.at("oversized"), 1);
}

TEST_F(GraphManagerTest, ABatchIsCutAtTheMostItemsOfAReplay) {
  h.expect_right(batch(std::vector<Grid>(8, {1, 4, 4})));
  const Stats s = stats();
  EXPECT_EQ(s.graph_hits, 8);
  EXPECT_EQ(s.sub_batches, 2);
  EXPECT_EQ(s.paths[0].replays, 2);
  EXPECT_EQ(s.paths[0].live_rows, 32);
  EXPECT_EQ(s.paths[0].padded_rows, 0);  // both loads fill the budget of 16
}

TEST_F(GraphManagerTest, RowsKeepTheOrderOfTheItems) {
  const Batch mixed = batch({{1, 8, 8}, {1, 2, 2}, {1, 18, 18}, {1, 4, 4}});
  h.expect_right(mixed);
  EXPECT_EQ(stats().graph_hits, 3);
  EXPECT_EQ(stats().graph_misses, 1);
}

TEST_F(GraphManagerTest, ReplaysEqualEagerRunsBitForBit) {
  for_all(200, [&](auto& random) {
    std::vector<Grid> grids(static_cast<std::size_t>(uniform(random, 0, 10)));
    for (Grid& grid : grids) {
      grid = {uniform(random, 1, 3), 2 * uniform(random, 1, 7), 2 * uniform(random, 1, 7)};
    }
    const Batch items = batch(grids, random());
    const auto replayed = h.encode(items);
    const auto eager = h.encode_eager(items);
    for (std::size_t i = 0; i < grids.size(); ++i) {
      EXPECT_TRUE(same_bits(replayed[i], eager[i])) << "item " << i;
      EXPECT_TRUE(same_bits(eager[i], h.model.reference(items.items()[i]))) << "item " << i;
    }
  });
  EXPECT_GT(stats().graph_hits, 0);
}

TEST_F(GraphManagerTest, AnEmptyBatchRunsNothing) {
  EXPECT_TRUE(h.encode(Batch{}).empty());
  const Stats s = stats();
  EXPECT_EQ(s.graph_hits + s.graph_misses + s.skipped + s.sub_batches, 0);
}

TEST_F(GraphManagerTest, LaterBatchesLeaveTheRowsOfEarlierOnes) {
  const Batch first = batch({{1, 4, 4}, {1, 18, 18}}, 1);
  const OutputRows kept(*h.device, first, 32);
  h.manager.execute(first.pointers(), kept.views());
  const auto before = kept.rows();
  (void)h.encode(batch({{1, 8, 8}, {1, 18, 18}}, 100));
  EXPECT_EQ(kept.rows(), before);
}

TEST_F(GraphManagerTest, LeftoversOfLargerBatchesDoNotShow) {
  h.expect_right(batch({{1, 16, 16}}));    // all 64 tokens of the large graph
  h.expect_right(batch({{1, 2, 34}}, 7));  // 17 tokens in the same graph
  h.expect_right(batch({{3, 2, 12}}, 8));  // several sequences, then one
  h.expect_right(batch({{1, 2, 36}}, 9));
  EXPECT_EQ(stats().graph_misses, 0);
}

TEST_F(GraphManagerTest, PoisonedMemoryDoesNotShow) {
  for (const Grid& grid : {Grid{1, 4, 4}, Grid{1, 10, 10}, Grid{3, 2, 2}, Grid{1, 18, 18}}) {
    h.manager.fill_memory_with_nan();
    h.expect_right(batch({grid}));
  }
}

TEST_F(GraphManagerTest, NansStayInTheirItem) {
  PreparedItem sick = h.model.make_item({1, 4, 4}, 0);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (std::size_t at = 0; at < sick.pixels.size(); at += sizeof nan) {
    std::memcpy(sick.pixels.data() + at, &nan, sizeof nan);
  }
  const Batch mixed({sick, h.model.make_item({1, 4, 4}, 1), h.model.make_item({1, 2, 2}, 2)});
  for (int round = 0; round < 2; ++round) {  // the second time on the leftovers of the first
    const auto rows = h.encode(mixed);
    EXPECT_TRUE(std::isnan(rows[0][0]));
    EXPECT_TRUE(same_bits(rows[1], h.model.reference(mixed.items()[1])));
    EXPECT_TRUE(same_bits(rows[2], h.model.reference(mixed.items()[2])));
  }
  h.expect_right(batch({{1, 6, 8}}));
}

// --- video ---

TEST_F(GraphManagerTest, ImagesAndVideosShareAReplay) {
  const Batch mixed = batch({{2, 4, 4}, {1, 4, 4}});
  const auto rows = h.encode(mixed);
  EXPECT_EQ(rows[0].size(), 8u * 32u);
  EXPECT_EQ(rows[1].size(), 4u * 32u);
  EXPECT_EQ(stats().graph_hits, 2);
  EXPECT_EQ(stats().sub_batches, 1);  // image and video share a replay
}

TEST_F(GraphManagerTest, OversizedVideosRunEagerly) {
  const auto rows = h.encode(batch({{2, 18, 18}}));
  EXPECT_EQ(rows[0].size(), 162u * 32u);
  EXPECT_EQ(stats().graph_misses, 1);
}

TEST_F(GraphManagerTest, OneManagerServesImagesVideosAndBoth) {
  h.expect_right(batch({{1, 4, 4}, {1, 8, 8}}));
  h.expect_right(batch({{2, 4, 4}, {4, 2, 2}}, 5));
  h.expect_right(batch({{2, 4, 4}, {1, 8, 8}, {3, 2, 4}}, 9));
  EXPECT_EQ(stats().graph_misses, 0);
}

TEST(GraphManager, FramesOfAReplayAreLimited) {
  GraphManagerOptions options = small_options();
  options.user.encoder_cudagraph_max_frames_per_batch = 8;
  MockHarness h = make_mock({}, options);
  h.manager.capture();
  // 8, 4, 24 and 12 tokens in 2, 1, 6 and 3 frames
  h.expect_right(mock_batch(h.model, {{2, 4, 4}, {1, 4, 4}, {6, 4, 4}, {3, 4, 4}}));
  EXPECT_EQ(h.manager.stats().sub_batches, 3) << "4 + 8, 12, and 24 that 8 frames end before";
  EXPECT_EQ(h.manager.stats().graph_hits, 4);
  h.expect_right(mock_batch(h.model, {{9, 4, 4}}));
  EXPECT_EQ(h.manager.stats().miss_reasons.at("frames"), 1);
}

TEST(GraphManager, AVideoAboveTheFrameLimitRunsEagerlyHoweverManyItemsFit) {
  GraphManagerOptions options = small_options();
  options.user.encoder_cudagraph_max_frames_per_batch = 2;  // below the limit of 4 items
  MockHarness h = make_mock({}, options);
  h.manager.capture();
  h.expect_right(mock_batch(h.model, {{3, 4, 4}}));
  EXPECT_EQ(h.manager.stats().miss_reasons.at("frames"), 1);
  h.expect_right(mock_batch(h.model, {{2, 4, 4}, {1, 2, 2}, {1, 2, 2}, {1, 2, 2}, {1, 2, 2}}));
  EXPECT_EQ(h.manager.stats().graph_hits, 5);
  EXPECT_EQ(h.manager.stats().sub_batches, 3) << "four images, then the video, and the one before";
}

TEST(GraphManager, ModalitiesWithoutGraphsRunEagerly) {
  MockHarness h = make_mock({.modalities = {Modality::kImage}});
  h.manager.capture();
  h.expect_right(mock_batch(h.model, {{2, 4, 4}, {1, 4, 4}, {2, 2, 2}}));
  EXPECT_EQ(h.manager.stats().graph_hits, 1);
  EXPECT_EQ(h.manager.stats().miss_reasons.at("unsupported_modality"), 2);
}

TEST(GraphManager, PrunedVideosRunEagerlyBesideReplayedImages) {
  GraphManagerOptions options = small_options();
  options.videos_are_pruned = true;
  MockHarness h = make_mock({}, options);
  h.manager.capture();
  h.expect_right(mock_batch(h.model, {{2, 4, 4}, {1, 4, 4}, {2, 2, 2}, {1, 2, 2}}));
  EXPECT_EQ(h.manager.config().max_frames, 0);  // no graph has room for a video
  EXPECT_EQ(h.manager.stats().graph_hits, 2);
  EXPECT_EQ(h.manager.stats().graph_misses, 2);
  EXPECT_EQ(h.manager.stats().miss_reasons, (std::map<std::string, std::int64_t>{{"pruning", 2}}));
}

TEST(GraphManager, AModelWithoutGraphModalitiesRunsEagerly) {
  MockHarness h = make_mock({.modalities = {}});  // what the reference declares for pruned videos
  h.manager.capture();
  h.expect_right(mock_batch(h.model, {{2, 4, 4}, {1, 4, 4}}));
  EXPECT_EQ(h.manager.stats().graph_hits, 0);
  EXPECT_EQ(h.manager.stats().miss_reasons.at("unsupported_modality"), 2);
}

TEST(GraphManager, VideosRunEagerlyWhenFramesAreZero) {
  GraphManagerOptions options = small_options();
  options.user.encoder_cudagraph_max_frames_per_batch = 0;
  MockHarness h = make_mock({}, options);
  h.manager.capture();
  h.expect_right(mock_batch(h.model, {{2, 4, 4}, {1, 4, 4}}));
  EXPECT_EQ(h.manager.stats().graph_hits, 1);
  EXPECT_EQ(h.manager.stats().graph_misses, 1);
}

// --- edges ---

TEST_F(GraphManagerTest, ItemsWithoutTokensAreSkippedAmongOthers) {
  const Batch mixed = batch({{1, 0, 0}, {1, 4, 4}, {1, 0, 0}});
  h.expect_right(mixed);
  EXPECT_EQ(stats().graph_hits, 1);
  EXPECT_EQ(stats().skipped, 2);
}

TEST_F(GraphManagerTest, ItemsWithoutTokensAloneRunNothing) {
  const std::int64_t before = h.model.forwards_run();
  h.expect_right(batch({{1, 0, 0}}));
  EXPECT_EQ(stats().skipped, 1);
  EXPECT_EQ(stats().sub_batches, 0);
  EXPECT_EQ(stats().graph_hits + stats().graph_misses, 0);
  EXPECT_EQ(h.model.forwards_run(), before);
}

TEST_F(GraphManagerTest, WrongDestinationsAreRefused) {
  const Batch one = batch({{1, 4, 4}});
  expect_error(ErrorCode::kInvalidArgument, "1 items need as many destinations, got 0",
               [&] { h.manager.execute(one.pointers(), {}); });
  const Tensor narrow = make_tensor(*h.device, DType::kF32, {4, 31});
  const std::array views{narrow.view()};
  expect_error(ErrorCode::kInvalidArgument, "item 0 needs a destination of [4, 32], got [4, 31]",
               [&] { h.manager.execute(one.pointers(), views); });
}

TEST(GraphManager, IsNotForTowersCompiledAgainstAnotherVersion) {
  constexpr auto takes = []<int kVersion>(TowerVersion<kVersion>) {
    return std::is_constructible_v<GraphManager, const EncoderGraphModel&, Device&,
                                   const GraphManagerOptions&, TowerVersion<kVersion>>;
  };
  EXPECT_TRUE(takes(TowerVersion<kTowerVersion>{}));
  EXPECT_FALSE(takes(TowerVersion<kTowerVersion + 1>{}));
}

TEST(GraphManager, AnItemMayFillABudgetThatTheItemsDoNotDivide) {
  GraphManagerOptions options;
  options.user.encoder_cudagraph_token_budgets = {324};
  options.user.encoder_cudagraph_max_vision_items_per_batch = 8;
  MockHarness h = make_mock({}, options);
  h.manager.capture();
  h.expect_right(mock_batch(h.model, {{1, 36, 36}}));  // 324 tokens
  EXPECT_EQ(h.manager.stats().graph_hits, 1);
}

TEST(GraphManager, ABatchThatOverflowsItsInputsRunsEagerlyWithOneWarning) {
  RecordingLog log;
  GraphManagerOptions options = small_options();
  options.log = &log;
  MockHarness h = make_mock({.narrow_rows_by = 8, .narrow_only_at = 4}, options);
  h.manager.capture();
  for (int round = 0; round < 2; ++round) {
    h.expect_right(mock_batch(h.model, {{1, 8, 8}}));  // 64 rows, the graph of 16 declared 56
    h.expect_right(mock_batch(h.model, {{1, 4, 4}}));
  }
  EXPECT_EQ(h.manager.stats().miss_reasons.at("capacity"), 2);
  EXPECT_EQ(h.manager.stats().graph_hits, 2);
  EXPECT_EQ(log.count("input_too_small path=default buffer=pixel_values"), 1);  // warned once
}

TEST(GraphManager, LogsCountersEveryItemAtMost) {
  GraphManagerOptions options = small_options();
  for (const std::int64_t interval : {0, -1}) {
    options.log_interval = interval;
    expect_error(ErrorCode::kInvalidArgument,
                 cat("log_interval: expected at least 1, got ", interval),
                 [&] { MockHarness h = make_mock({}, options); });
  }
}

TEST(GraphManager, BuffersTooSmallForAnEagerRunAreAnError) {
  MockHarness h = make_mock({.narrow_rows_by = 8});
  const Batch one = mock_batch(h.model, {{1, 8, 8}});
  const OutputRows out(*h.device, one, 32);
  expect_error(ErrorCode::kUnavailable, "input \"pixel_values\" holds 56 rows, the batch needs 64",
               [&] { h.manager.execute(one.pointers(), out.views()); });
}

TEST_F(GraphManagerTest, ForgottenBufferIsAnErrorThatNamesIt) {
  for (const char* const name : {"pixel_values", "live", "cu_seqlens"}) {
    MockHarness broken = make_mock({.forgotten_buffer = name});
    broken.manager.capture();
    const Batch one = mock_batch(broken.model, {{1, 4, 4}});
    const OutputRows out(*broken.device, one, 32);
    expect_error(ErrorCode::kInternal, cat("input \"", name, "\" was not written for this batch"),
                 [&] { broken.manager.execute(one.pointers(), out.views()); });
    expect_error(ErrorCode::kInternal, name,
                 [&] { broken.manager.execute_eager(one.pointers(), out.views()); });
  }
}

// --- threads ---

TEST_F(GraphManagerTest, ThreadsMayShareAManager) {
  const Batch first = batch({{1, 4, 4}, {1, 8, 8}, {1, 18, 18}}, 1);
  const Batch second = batch({{2, 4, 4}, {1, 2, 2}}, 50);
  const auto work = [&](const Batch& mine) {
    for (int round = 0; round < 50; ++round) h.expect_right(mine);
  };
  std::thread other(work, std::cref(second));
  work(first);
  other.join();
  EXPECT_EQ(stats().graph_hits, 50 * 4);
  EXPECT_EQ(stats().graph_misses, 50);
}

}  // namespace
}  // namespace fovea
