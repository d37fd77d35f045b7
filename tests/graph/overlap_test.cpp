// The manager on a device whose memory is not host memory and whose queues run as late, or as out
// of step, as they may: a missing wait shows as foreign rows.
#include <gtest/gtest.h>

#include "core/check.h"
#include "graph/harness.h"
#include "graph/lane.h"
#include "graph/recording_log.h"
#include "support/expect_error.h"
#include "support/property.h"

namespace fovea {
namespace {

using namespace test;  // NOLINT: the harness is written for these tests

class OverlapTest : public ::testing::TestWithParam<Schedule> {};

TEST_P(OverlapTest, ManySubBatchesOfOneCall) {
  MockHarness h(MockModel{}, small_options(), GetParam());
  h.manager.capture();
  for_all(50, [&](auto& random) {
    std::vector<Grid> grids(static_cast<std::size_t>(uniform(random, 1, 40)));
    for (Grid& grid : grids) {
      grid = {uniform(random, 1, 3), 2 * uniform(random, 1, 8), 2 * uniform(random, 1, 8)};
    }
    h.expect_right(mock_batch(h.model, grids, random()));
  });
  const Stats stats = h.manager.stats();
  EXPECT_GT(stats.graph_hits, 0);
  EXPECT_GT(stats.graph_misses, 0);
}

TEST_P(OverlapTest, TwoPaths) {
  GraphManagerOptions options;
  options.user.encoder_cudagraph_max_vision_items_per_batch = 3;
  DualHarness h(DualModel(816), options, GetParam());
  h.manager.capture();
  std::vector<PreparedItem> items;
  for (std::uint64_t i = 0; i < 12; ++i) {
    items.push_back(h.model.make_crop(1 + static_cast<std::int64_t>(i % 3),
                                      1 + static_cast<std::int64_t>(i / 3 % 3), i));
  }
  h.expect_right(Batch(std::move(items)));
  EXPECT_GT(h.manager.stats().graph_partial, 0);
}

TEST_P(OverlapTest, AReaderIsWaitedForOnTheDeviceAlone) {
  MockHarness h(MockModel{}, small_options(), GetParam());
  h.manager.capture();
  const Batch first = mock_batch(h.model, {{1, 4, 4}}, 1);
  const Batch second = mock_batch(h.model, {{1, 4, 4}}, 2);
  const OutputRows rows(*h.device, first, h.model.graph_spec().out_width);
  const OutputRows kept(*h.device, first, h.model.graph_spec().out_width);
  const auto reader = h.device->create_stream();
  (void)h.manager.execute(first.pointers(), rows.views());  // memory has grown
  const std::int64_t before = h.device->host_waits();
  (void)h.manager.execute(first.pointers(), rows.views(), {.reader = reader.get()});
  EXPECT_EQ(h.device->host_waits(), before);
  reader->copy(kept.views()[0].data, rows.views()[0].data, rows.views()[0].bytes());
  (void)h.manager.execute(second.pointers(), rows.views(),
                          {.reader = reader.get()});  // the same memory
  (void)h.manager.execute_eager(
      second.pointers(), OutputRows(*h.device, second, h.model.graph_spec().out_width).views());
  reader->synchronize();
  EXPECT_EQ(kept.rows()[0], h.model.reference(first.items()[0])) << "read before it was replaced";
  EXPECT_EQ(rows.rows()[0], h.model.reference(second.items()[0]));
}

TEST_P(OverlapTest, PixelsOnTheDeviceAreReadBehindWhoeverWritesThem) {
  MockHarness h(MockModel{}, small_options(), GetParam());
  h.manager.capture();
  for_all(20, [&](auto& random) {
    std::vector<Grid> grids(static_cast<std::size_t>(uniform(random, 1, 12)));
    for (Grid& grid : grids) {
      grid = {uniform(random, 1, 3), 2 * uniform(random, 1, 8), 2 * uniform(random, 1, 8)};
    }
    const Batch batch = mock_batch(h.model, grids, random());
    const auto writer = h.device->create_stream();
    std::vector<Buffer> memory;
    std::vector<PreparedItem> items = batch.items();
    for (PreparedItem& item : items) {
      if (uniform(random, 0, 2) == 0) continue;  // stays on the host
      memory.push_back(h.device->allocate(item.pixels.size()));
      item.on_device = {reinterpret_cast<std::uint8_t*>(memory.back().data()), item.pixels.size()};
      item.written_by = {.device = 0, .handle = static_cast<DeferredStream*>(writer.get())};
    }
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (items[i].on_device.empty()) continue;
      auto* const to = const_cast<std::uint8_t*>(items[i].on_device.data());
      writer->copy(reinterpret_cast<std::byte*>(to),
                   reinterpret_cast<const std::byte*>(batch.items()[i].pixels.data()),
                   items[i].pixels.size());
      items[i].pixels.clear();
    }
    const Batch there(std::move(items));
    for (const std::vector<Rows>& rows : {h.encode(there), h.encode_eager(there)}) {
      for (std::size_t i = 0; i < rows.size(); ++i) {
        EXPECT_TRUE(same_bits(rows[i], h.model.reference(batch.items()[i]))) << "item " << i;
      }
    }
  });
  EXPECT_GT(h.manager.stats().graph_hits, 0);
}

TEST_P(OverlapTest, CapturesOnDemandBetweenReplays) {
  GraphManagerOptions options = small_options();
  options.missing = MissingGraph::kCapture;
  MockHarness h(MockModel{}, options, GetParam());
  h.expect_right(mock_batch(h.model, {{1, 4, 4}, {1, 14, 14}, {1, 16, 16}}));
  EXPECT_EQ(h.manager.stats().graph_hits, 3);
}

TEST_P(OverlapTest, GraphsWithoutRoomStayEager) {
  RecordingLog log;
  GraphManagerOptions options = small_options();
  options.missing = MissingGraph::kCapture;
  options.log = &log;
  MockHarness h(MockModel{}, options, GetParam());
  auto& device = static_cast<DeferredDevice&>(*h.device);
  const Batch small = mock_batch(h.model, {{1, 4, 4}});
  const Batch large = mock_batch(h.model, {{1, 12, 12}});
  (void)h.encode_eager(large);  // room for eager runs comes first
  h.expect_right(small);
  EXPECT_EQ(h.manager.stats().graph_hits, 1);
  device.set_limit(device.allocated_bytes() + 20'000);  // enough for results, not for the graph
  for (int round = 0; round < 2; ++round) {
    h.expect_right(large);
    h.expect_right(small);
  }
  EXPECT_EQ(h.manager.stats().graph_hits, 3);
  EXPECT_EQ(h.manager.stats().miss_reasons.at("not_captured"), 2);
  EXPECT_EQ(log.count("no_memory"), 1);
  // Asked for once: sixteen warm-ups and a run for the small graph before, the same again after the
  // failed attempt had dropped it, one more replay, and three eager runs of the large item.
  EXPECT_EQ(h.model.forwards_run(), 1 + 17 + 2 + 17 + 1);
}

TEST_P(OverlapTest, CaptureLeavesOutTheGraphsWithoutRoom) {
  for (const bool in_background : {false, true}) {
    RecordingLog log;
    GraphManagerOptions options = small_options();
    options.log = &log;
    MockHarness h(MockModel{}, options, GetParam());
    auto& device = static_cast<DeferredDevice&>(*h.device);
    device.set_limit(100'000);                 // 64 tokens need 140,000, 16 a quarter of it
    for (int round = 0; round < 2; ++round) {  // the second finds nothing to do
      if (in_background) h.manager.capture_in_background();
      h.manager.wait_for_background();
      h.manager.capture();
      EXPECT_EQ(h.manager.captured_keys(), (std::vector<GraphKey>{{.budget = 16}}));
      EXPECT_EQ(h.model.forwards_recorded(), 3 * 8) << "eight sizes";
    }
    EXPECT_EQ(log.count("no_memory path=default budget=64"), 1);
    const GraphMemoryReport report = h.manager.memory();
    EXPECT_EQ(report.arena + report.inputs + report.outputs, device.allocated_bytes());
    device.set_limit(std::numeric_limits<std::size_t>::max());
    h.expect_right(mock_batch(h.model, {{1, 4, 4}}));
    h.expect_right(mock_batch(h.model, {{1, 12, 12}}));
    EXPECT_EQ(h.manager.stats().graph_hits, 1);
    EXPECT_EQ(h.manager.stats().miss_reasons.at("not_captured"), 1);
    h.manager.clear();
    h.manager.capture();
    EXPECT_EQ(h.manager.stats().num_budgets, 2);
  }
}

TEST_P(OverlapTest, GraphsWithoutRoomForAnEagerRunAreReplayed) {
  RecordingLog log;
  const auto clock = std::make_shared<double>(0);
  GraphManagerOptions options = small_options();
  options.measure = true;
  options.clock_ms = [clock] { return *clock; };
  options.log = &log;
  MockHarness h(MockModel({.clock_ms = clock}), options, GetParam());
  auto& device = static_cast<DeferredDevice&>(*h.device);
  device.set_limit(200'000);  // one graph of 64 tokens, and an eager run of 16
  h.manager.capture_in_background();
  h.manager.wait_for_background();
  EXPECT_EQ(log.count("not_measured path=default budget=64"), 1);
  const std::vector<GraphReport> graphs = h.manager.stats().graphs;
  ASSERT_EQ(graphs.size(), 2u);
  EXPECT_EQ(graphs[0].replay_ms, 0);
  EXPECT_GT(graphs[1].replay_ms, 0);
  EXPECT_EQ(h.manager.memory().eager, 0u);
  h.expect_right(mock_batch(h.model, {{1, 16, 16}}));
  EXPECT_EQ(h.manager.stats().graph_hits, 1);
}

TEST_P(OverlapTest, EagerRunsGoOnAfterOneHadNoMemory) {
  GraphManagerOptions options;
  options.user.encoder_cudagraph_max_vision_items_per_batch = 3;
  int failures = 0;
  for (bool failed = true; failed; failures += failed ? 1 : 0) {
    DualHarness h(DualModel(816), options, GetParam());
    auto& device = static_cast<DeferredDevice&>(*h.device);
    const Batch pages({h.model.make_plain(272, 0, 1)});
    const Batch tiles({h.model.make_plain(0, 600, 2)});  // the other path, in the same arena
    (void)h.encode_eager(pages);
    const OutputRows out(device, tiles, DualModel::kColumns);
    device.fail_once_after(failures);
    try {
      h.manager.execute_eager(tiles.pointers(), out.views());
      failed = false;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory) << error.what();
    }
    device.fail_once_after(-1);
    for (const Batch* const batch : {&pages, &tiles}) {
      EXPECT_TRUE(same_bits(h.encode_eager(*batch)[0], h.model.reference(batch->items()[0])));
    }
  }
  EXPECT_EQ(failures, 6);  // four for the inputs, the arena and the output
}

TEST_P(OverlapTest, FailureWaitsForWhatWasSubmittedBefore) {
  int sub_batches = 0;
  MockHarness h(
      MockModel(
          {.before_fill = [&] { FOVEA_CHECK(sub_batches++ == 0, kDevice, "lost the device"); }}),
      small_options(), GetParam());
  h.manager.capture();
  const Batch batch = mock_batch(h.model, {{1, 16, 16}, {1, 4, 4}});
  const OutputRows out(*h.device, batch, 32);
  expect_error(ErrorCode::kDevice, "lost the device",
               [&] { h.manager.execute(batch.pointers(), out.views()); });
  // The small item ran first. Nothing may still be about to write to its destination.
  EXPECT_TRUE(same_bits(out.rows()[1], h.model.reference(batch.items()[1])));
}

TEST_P(OverlapTest, PoisonReachesEveryMemory) {
  MockHarness h(MockModel{}, small_options(), GetParam());
  h.manager.capture();
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    h.manager.fill_memory_with_nan();
    h.expect_right(mock_batch(h.model, {{1, 4, 4}, {2, 6, 6}, {1, 18, 18}}, seed));
  }
}

TEST_P(OverlapTest, MemoryIsAccountedExactly) {
  MockHarness h(MockModel{}, small_options(), GetParam());
  h.manager.capture();
  const GraphMemoryReport report = h.manager.memory();
  const auto& device = static_cast<DeferredDevice&>(*h.device);
  EXPECT_EQ(report.arena + report.inputs + report.outputs, device.allocated_bytes());
  EXPECT_EQ(report.host, device.host_bytes());
}

TEST(Lane, UploadsTakeAQueueWithoutScratchForOps) {
  const auto kernels = make_cpu_kernels(CpuIsa::kPortable, 1);
  DeferredDevice device(*kernels, Schedule::kLast);
  const Lane lane(device);
  EXPECT_EQ(device.num_op_streams(), 2);
  EXPECT_NE(&lane.copy(), &lane.compute());
}

INSTANTIATE_TEST_SUITE_P(Schedules, OverlapTest,
                         ::testing::Values(Schedule::kLast, Schedule::kCopyFirst),
                         [](const auto& entry) {
                           return entry.param == Schedule::kLast ? "Last" : "CopyFirst";
                         });

}  // namespace
}  // namespace fovea
