// Data parallelism: any number of replicas gives the rows of one, in order, each item in memory of
// its own. Simulated replicas of mock models, and engines with several CPU replicas.
#include "engine/replica_group.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <set>

#include "device/cpu/cpu_device.h"
#include "fovea/fovea.h"
#include "graph/deferred_device.h"
#include "graph/dual_model.h"
#include "graph/mock_model.h"
#include "ops/cpu/cpu_kernels.h"
#include "support/expect_error.h"
#include "support/golden.h"

namespace fovea {
namespace {

using test::DeferredDevice;
using test::DualModel;
using test::Grid;
using test::MockModel;

using Items = std::vector<PreparedItem>;
using Floats = std::vector<float>;

std::vector<const PreparedItem*> pointers(const Items& items) {
  std::vector<const PreparedItem*> result;
  for (const PreparedItem& item : items) result.push_back(&item);
  return result;
}

Floats values(const Embedding& rows) {
  Floats result(rows.data.size() / sizeof(float));
  if (!result.empty()) std::memcpy(result.data(), rows.data.data(), rows.data.size());
  return result;
}

/// Replicas on devices of their own, each with a copy of one model.
template <class Model>
class Group {
 public:
  using Configure = std::function<void(std::size_t rank, GraphManagerOptions& options)>;

  explicit Group(std::size_t num_replicas, const Model& model = Model(),
                 const Configure& configure = nullptr)
      : models_(num_replicas, model) {
    for (std::size_t rank = 0; rank < num_replicas; ++rank) {
      devices_.push_back(make_device(rank));
      GraphManagerOptions options;
      options.user.encoder_cudagraph_max_vision_items_per_batch = 4;
      options.missing = MissingGraph::kCapture;
      if (configure) configure(rank, options);
      parts_.push_back(std::make_unique<Replica>(models_[rank], *devices_.back(), options));
    }
    group_ = std::make_unique<ReplicaGroup>(std::move(parts_));
  }

  [[nodiscard]] std::vector<Embedding> encode(const Items& items, const EncodeOptions& how = {}) {
    std::vector<Embedding> rows(items.size());
    encode_into(rows, items, how);
    return rows;
  }

  void encode_into(std::vector<Embedding>& rows, const Items& items,
                   const EncodeOptions& how = {}) {
    std::vector<Embedding*> out;
    for (Embedding& one : rows) out.push_back(&one);
    try {
      group_->begin(pointers(items), how, out);
      group_->finish();
    } catch (...) {
      group_->abandon();
      throw;
    }
  }

  /// Encodes and compares every item with the model's plain loop, bit by bit.
  void expect_right(const Items& items) {
    const std::vector<Embedding> rows = encode(items);
    ASSERT_EQ(rows.size(), items.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
      EXPECT_EQ(rows[i].rows, items[i].plan.spec.out_rows) << "item " << i;
      EXPECT_EQ(values(rows[i]), models_.front().reference(items[i])) << "item " << i;
    }
  }

  [[nodiscard]] ReplicaGroup& operator*() { return *group_; }
  [[nodiscard]] ReplicaGroup* operator->() { return group_.get(); }
  [[nodiscard]] DeferredDevice& gpu(std::size_t rank) {
    return dynamic_cast<DeferredDevice&>(*devices_[rank]);
  }

 private:
  /// Even ranks compute in host memory, odd ones stand for GPUs.
  [[nodiscard]] std::unique_ptr<Device> make_device(std::size_t rank) const {
    if (rank % 2 == 0) return make_cpu_device(1, *kernels_);
    return std::make_unique<DeferredDevice>(*kernels_, test::Schedule::kLast);
  }

  std::unique_ptr<Kernels> kernels_ = make_cpu_kernels(CpuIsa::kPortable, 1);
  std::vector<Model> models_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<std::unique_ptr<Replica>> parts_;
  std::unique_ptr<ReplicaGroup> group_;
};

using MockGroup = Group<MockModel>;

Items mock_items(const std::vector<Grid>& grids) {
  const MockModel model;
  Items items;
  for (const Grid& grid : grids) items.push_back(model.make_item(grid, items.size()));
  return items;
}

// 4, 16, 81, 8 and 1 tokens; the third fits no budget.
Items five_items() { return mock_items({{1, 4, 4}, {1, 8, 8}, {1, 18, 18}, {2, 4, 4}, {1, 2, 2}}); }

TEST(ReplicaGroup, Case73_dp_roundtrip) {
  for (std::size_t replicas = 1; replicas <= 8; ++replicas) {
    SCOPED_TRACE(replicas);
    MockGroup group(replicas);
    for (int round = 0; round < 3; ++round) group.expect_right(five_items());
    const Stats all = sum(group->stats());
    EXPECT_EQ(all.graph_hits + all.graph_misses, 3 * 5);
  }
}

TEST(ReplicaGroup, Case74_dp_empty_rank) {
  MockGroup group(4);
  group.expect_right(mock_items({{1, 8, 8}}));
  const std::vector<ReplicaStats> stats = group->stats();
  EXPECT_EQ(stats[0].stats.sub_batches, 1);
  for (std::size_t rank = 1; rank < 4; ++rank) EXPECT_EQ(stats[rank].stats.sub_batches, 0);
}

TEST(ReplicaGroup, Case75_dp_zero_items) {
  MockGroup group(3);
  EXPECT_TRUE(group.encode({}).empty());
  EXPECT_EQ(sum(group->stats()).sub_batches, 0);
  group.expect_right(mock_items({{1, 0, 0}, {1, 4, 4}, {1, 0, 0}, {1, 0, 0}}));
  EXPECT_EQ(sum(group->stats()).skipped, 3);
}

TEST(ReplicaGroup, Case76_dp_mixed_modes) {
  MockGroup group(3, MockModel(), [](std::size_t rank, GraphManagerOptions& options) {
    options.user.cudagraph_mm_encoder = rank != 1;
  });
  group.expect_right(mock_items(std::vector<Grid>(6, {1, 4, 4})));
  const std::vector<ReplicaStats> stats = group->stats();
  EXPECT_EQ(stats[0].stats.graph_hits, 2);
  EXPECT_EQ(stats[1].stats.graph_misses, 2);
  EXPECT_EQ(stats[1].stats.miss_reasons.at("disabled"), 2);
  EXPECT_EQ(stats[2].stats.graph_hits, 2);
}

TEST(ReplicaGroup, Case77_dp_two_tower) {
  const DualModel model(1088);
  Items items;
  for (const auto& [w, h] : {std::pair{1, 1}, {2, 3}, {1, 1}, {2, 2}, {3, 1}}) {
    items.push_back(model.make_crop(w, h, items.size()));
  }
  EXPECT_EQ(items[1].plan.spec.out_rows, 903);  // 272 + 1 + 600 and 30 newlines
  for (const std::size_t replicas : {1, 2, 3, 8}) {
    SCOPED_TRACE(replicas);
    Group<DualModel> group(replicas, model);
    group.expect_right(items);
  }
}

TEST(ReplicaGroup, Case78_dp_rank_error) {
  const Items items = mock_items(std::vector<Grid>(6, {1, 8, 8}));
  MockGroup group(3);
  group.gpu(1).set_limit(0);
  std::vector<Embedding> rows(items.size());
  test::expect_error(ErrorCode::kOutOfMemory, "replica 1 on ",
                     [&] { group.encode_into(rows, items); });
  for (const std::size_t item : {0, 3, 2, 5}) {  // those of replicas 0 and 2
    EXPECT_EQ(values(rows[item]), MockModel().reference(items[item])) << "item " << item;
  }
  EXPECT_TRUE(rows[1].data.empty());
  group.gpu(1).set_limit(std::numeric_limits<std::size_t>::max());
  group.expect_right(items);
}

TEST(ReplicaGroup, RowsLeaveWhileTheNextBatchRuns) {
  MockGroup group(2);
  const std::vector<Items> batches{five_items(), mock_items({{1, 6, 6}, {1, 4, 4}}), five_items()};
  std::vector<std::vector<Embedding>> rows;
  for (const Items& items : batches) rows.emplace_back(items.size());
  for (std::size_t i = 0; i < batches.size(); ++i) {
    std::vector<Embedding*> out;
    for (Embedding& one : rows[i]) out.push_back(&one);
    group->begin(pointers(batches[i]), {}, out);
  }
  group->finish();
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const std::vector<Embedding> alone = group.encode(batches[i]);
    for (std::size_t j = 0; j < alone.size(); ++j) EXPECT_EQ(rows[i][j].data, alone[j].data);
  }
}

TEST(ReplicaGroup, WhatWasBegunCanBeGivenUp) {
  MockGroup group(2);
  const Items items = five_items();
  {
    std::vector<Embedding> rows(items.size());
    std::vector<Embedding*> out;
    for (Embedding& one : rows) out.push_back(&one);
    group->begin(pointers(items), {}, out);
    group->abandon();
  }
  group.expect_right(items);
}

TEST(ReplicaGroup, TheFirstOfSeveralErrorsIsReported) {
  const Items items = mock_items(std::vector<Grid>(8, {1, 4, 4}));
  MockGroup group(4);
  group.gpu(1).set_limit(0);
  group.gpu(3).set_limit(0);
  for (int round = 0; round < 20; ++round) {
    test::expect_error(ErrorCode::kOutOfMemory, "replica 1 on ",
                       [&] { (void)group.encode(items); });
  }
}

TEST(ReplicaGroup, ASingleReplicaDoesNotNameItself) {
  MockModel broken(test::MockOptions{.forgotten_buffer = "live"});
  MockGroup group(1, broken);
  try {
    (void)group.encode(mock_items({{1, 4, 4}}));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find("replica"), std::string::npos) << error.what();
  }
}

TEST(ReplicaGroup, TimesOfAShareAddUpByRows) {
  MockGroup group(2);
  const std::vector<Embedding> rows = group.encode(mock_items({{1, 8, 8}, {1, 4, 4}, {1, 4, 8}}));
  // Replica 0 has the first item alone, replica 1 the others, of 4 and 8 rows.
  EXPECT_GT(rows[0].times.encode_ms, 0);
  EXPECT_DOUBLE_EQ(rows[2].times.encode_ms, 2 * rows[1].times.encode_ms);
}

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

// --- the whole engine, with simulated replicas on the CPU ---

std::string golden_model(const std::string& family) {
  return test::golden_folder(family, "golden.safetensors");
}

MediaItem picture(std::int64_t width, std::int64_t height) {
  std::vector<std::uint8_t> rgb(static_cast<std::size_t>(width * height * 3));
  for (std::size_t i = 0; i < rgb.size(); ++i) {
    rgb[i] = static_cast<std::uint8_t>(static_cast<std::int64_t>(i) * 7 + width + 3 * height);
  }
  return image_rgb(std::move(rgb), width, height, cat(width, "x", height));
}

Engine load(const std::string& family, int replicas) {
  return Engine::load(golden_model(family),
                      {.device = "cpu", .data_parallel_size = replicas, .num_threads = 4});
}

void expect_same(std::span<const Embedding> got, std::span<const Embedding> expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].name, expected[i].name);
    EXPECT_EQ(got[i].rows, expected[i].rows);
    EXPECT_EQ(got[i].data, expected[i].data) << got[i].name;
  }
}

TEST(DataParallelEngine, Case73_dp_roundtrip) {
  std::vector<MediaItem> items{
      picture(320, 240), picture(64, 64), picture(100, 333),
      video_rgb(std::vector<std::uint8_t>(3 * 64 * 48 * 3, 90), 3, 64, 48, 2.0, "clip"),
      picture(200, 64)};
  const std::vector<Embedding> expected = load("qwen3_vl", 1).encode(items);
  for (const int replicas : {2, 3, 5, 8}) {
    SCOPED_TRACE(replicas);
    Engine engine = load("qwen3_vl", replicas);
    EXPECT_EQ(engine.replica_stats().size(), static_cast<std::size_t>(replicas));
    expect_same(engine.encode(items), expected);
    expect_same(engine.encode(items, {.enforce_eager = true}), expected);
    EXPECT_EQ(engine.stats().graph_hits, 5);
  }
}

TEST(DataParallelEngine, Case75_dp_zero_items) {
  EXPECT_TRUE(load("qwen3_vl", 2).encode({}).empty());
}

TEST(DataParallelEngine, Case77_dp_two_tower) {
  // Larger than a tile of 640 pixels: cut into tiles. Smaller: a page alone.
  const std::vector<MediaItem> items{picture(700, 300), picture(90, 120), picture(300, 800),
                                     picture(64, 64)};
  Engine one = load("deepseek_ocr", 1);
  const std::vector<Embedding> expected = one.encode(items);
  EXPECT_GT(expected[0].rows, expected[1].rows);
  Engine two = load("deepseek_ocr", 2);
  expect_same(two.encode(items), expected);
}

TEST(DataParallelEngine, LongCallsTakeSeveralWindows) {
  Engine one = load("qwen3_vl", 1);
  const MediaItem seen = picture(64, 64);
  const Embedding known = one.encode({&seen, 1}).front();
  std::vector<MediaItem> items;  // a window of two replicas is 128 items
  for (std::int64_t i = 0; i < 300; ++i) {
    items.push_back(i % 3 == 0 ? precomputed(known) : picture(32 + 32 * (i % 4), 32 + i % 64));
  }
  Engine two = load("qwen3_vl", 2);
  std::vector<std::int64_t> done;
  const auto progress = [&](std::int64_t now, std::int64_t) { done.push_back(now); };
  expect_same(two.encode(items, {.progress = progress}), one.encode(items));
  EXPECT_GT(done.size(), 1u);
  EXPECT_EQ(done.back(), 300);
  EXPECT_EQ(two.stats().graph_hits, 200);
  EXPECT_EQ(two.stats().miss_reasons.at("precomputed"), 100);
}

TEST(DataParallelEngine, FailedItemsLeaveTheOthersInPlace) {
  const std::vector<MediaItem> items{picture(64, 64), image_file("missing.jpg"), picture(96, 64),
                                     picture(64, 96)};
  const EncodeOptions skip{.on_error = OnError::kSkip};
  const std::vector<Embedding> rows = load("qwen3_vl", 3).encode(items, skip);
  EXPECT_TRUE(rows[1].error);
  expect_same(rows, load("qwen3_vl", 1).encode(items, skip));
}

TEST(DataParallelEngine, Case79_cache_no_pin) {
  std::vector<Embedding> kept;
  {
    Engine engine = load("qwen3_vl", 3);
    std::vector<Embedding> batch = engine.encode(std::vector<MediaItem>{
        picture(640, 480), picture(64, 64), picture(320, 64), picture(96, 96)});
    kept.push_back(std::move(batch[1]));  // what a cache does with one item of a batch
  }
  // Neither the batch nor the engine is there any more, and the rows take what rows take.
  const Embedding& item = kept.front();
  EXPECT_EQ(item.data.size(), static_cast<std::size_t>(item.rows * item.width) * sizeof(float));
  EXPECT_EQ(item.data.capacity(), item.data.size());
  const MediaItem alone = picture(64, 64);
  EXPECT_EQ(item.data, load("qwen3_vl", 1).encode({&alone, 1}).front().data);
}

TEST(DataParallelEngine, VerifiesItselfOnEveryReplica) {
  Engine engine = Engine::load(
      golden_model("qwen3_vl"),
      {.device = "cpu", .data_parallel_size = 2, .num_threads = 4, .max_num_batched_tokens = 512});
  std::set<std::string> names;
  for (const Check& check : verify(engine, golden_model("qwen3_vl"))) {
    EXPECT_TRUE(check.passed) << check.name << ": " << check.detail;
    names.insert(check.name);
  }
  EXPECT_TRUE(names.contains("one equals all, replica 0"));
  EXPECT_TRUE(names.contains("one equals all, replica 1"));
}

TEST(DataParallelEngine, TimesTheTowerOverAllReplicas) {
  Engine engine = load("qwen3_vl", 2);
  const TowerTiming timing = time_tower(engine, 64, 3, 0, 2);
  EXPECT_EQ(timing.patches, 192);
  EXPECT_EQ(timing.budget, 64);  // two pictures of 16 tokens on one replica, one on the other
  for (const ReplicaStats& replica : engine.replica_stats()) EXPECT_GT(replica.stats.graph_hits, 0);
}

TEST(DataParallelEngine, ReplicasDivideThreadsAndShareWeights) {
  const Engine one = load("qwen3_vl", 1);
  const Engine three = load("qwen3_vl", 3);
  EXPECT_NE(one.device().find(", 4 threads"), std::string::npos) << one.device();
  EXPECT_NE(three.device().find(", 2 threads; cpu, "), std::string::npos) << three.device();
  EXPECT_TRUE(three.device().ends_with(", 1 threads")) << three.device();
  EXPECT_EQ(three.report().weight_bytes, one.report().weight_bytes);
  EXPECT_EQ(three.replica_stats()[2].device, "cpu");
}

TEST(DataParallelEngine, PlansAsItEncodes) {
  Engine engine = load("qwen3_vl", 2);
  const std::vector<ItemSize> sizes{{640, 480, 1}, {320, 240, 1}, {64, 64, 1}, {320, 224, 1}};
  const PackingPlan plan = engine.plan(sizes);
  EXPECT_EQ(plan.replica_patches, (std::vector<std::int64_t>{1200, 320 + 280 + 16}));
  ASSERT_EQ(plan.batches.size(), 2u);
  EXPECT_EQ(plan.batches[0].replica, 0);
  EXPECT_EQ(plan.batches[0].items, std::vector<std::int64_t>{0});
  EXPECT_EQ(plan.batches[1].replica, 1);
  EXPECT_EQ(plan.batches[1].items, (std::vector<std::int64_t>{2, 3, 1}));  // smallest first
}

TEST(DataParallelEngine, BalancesTheAttentionOfLargePicturesToo) {
  // 1,024, 400, 400, 256 and 256 patches. By patches alone the last one would join the first.
  const std::vector<ItemSize> sizes{
      {512, 512, 1}, {320, 320, 1}, {320, 320, 1}, {256, 256, 1}, {256, 256, 1}};
  EXPECT_EQ(load("qwen3_vl", 2).plan(sizes).replica_patches,
            (std::vector<std::int64_t>{1024, 400 + 400 + 256 + 256}));
}

TEST(DataParallelEngine, RefusesDevicesThatContradictEachOther) {
  const auto refused = [](const std::string& device, int replicas, const std::string& part) {
    test::expect_error(ErrorCode::kInvalidArgument, part, [&] {
      (void)Engine::load(golden_model("qwen3_vl"),
                         {.device = device, .data_parallel_size = replicas, .num_threads = 1});
    });
  };
  refused("cpu", -1, "number of replicas must be in [0, 64], got -1 for 1 names");
  refused("cpu", 65, "number of replicas must be in [0, 64], got 65 for 1 names");
  refused("cpu,cpu", 3, "device \"cpu,cpu\" names 2, the number of replicas is 3");
  refused("cuda:1", 2, "device \"cuda:1\" names 1, the number of replicas is 2");
  refused("cpu,cuda:0", 0, "all cpu or all cuda");
  refused("cpu,auto", 0, "all cpu or all cuda");
  refused("cpu,", 0, "all cpu or all cuda");
  refused("tpu", 2, "device \"tpu\" names 1");
  refused("cuda:0,cuda:x", 0, "cuda:<index>");
  refused("cuda:1,cuda:0,cuda:1", 0, "names a GPU twice");
  refused("cuda,cuda:0", 2, "names a GPU twice");
}

}  // namespace
}  // namespace fovea
