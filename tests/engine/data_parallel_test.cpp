// Engines with several CPU replicas: any number gives the rows of one, in order, each item in
// memory of its own.
#include <gtest/gtest.h>

#include <set>

#include "core/check.h"
#include "fovea/fovea.h"
#include "support/expect_error.h"
#include "support/golden.h"

namespace fovea {
namespace {

std::string golden_model(const std::string& family) {
  return test::golden_folder(family, "golden.safetensors");
}

MediaItem image(std::int64_t width, std::int64_t height) {
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

TEST(DataParallelEngine, AnyNumberOfReplicasGivesTheSameRows) {
  std::vector<MediaItem> items{
      image(320, 240), image(64, 64), image(100, 333),
      video_rgb(std::vector<std::uint8_t>(3 * 64 * 48 * 3, 90), 3, 64, 48, 2.0, "clip"),
      image(200, 64)};
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

TEST(DataParallelEngine, AVideoThatTheCacheKeepsIsSharedByAll) {
  std::vector<std::uint8_t> rgb(20 * 64 * 64 * 3);
  for (std::size_t i = 0; i < rgb.size(); ++i) rgb[i] = static_cast<std::uint8_t>(i * i / 77);
  const std::vector<MediaItem> items{video_rgb(std::move(rgb), 20, 64, 64, 2.0, "clip")};
  const std::vector<Embedding> expected = load("qwen3_vl", 1).encode(items);
  Engine engine = Engine::load(golden_model("qwen3_vl"), {.device = "cpu",
                                                          .data_parallel_size = 3,
                                                          .num_threads = 4,
                                                          .packing = PackingPolicy::kUnits,
                                                          .encoder_cache_bytes = 1 << 24});
  for (const CacheUse use : {CacheUse::kMiss, CacheUse::kHit}) {
    const std::vector<Embedding> got = engine.encode(items);
    expect_same(got, expected);
    EXPECT_EQ(got[0].cache, use);
    EXPECT_EQ(got[0].timestamps, expected[0].timestamps);
  }
  EXPECT_EQ(engine.stats().graph_hits, 1);
  for (const ReplicaStats& replica : engine.replica_stats()) {
    EXPECT_GT(replica.stats.sub_batches, 0);
  }
}

TEST(DataParallelEngine, AnEmptyBatchGivesNothing) {
  EXPECT_TRUE(load("qwen3_vl", 2).encode(std::vector<MediaItem>{}).empty());
}

TEST(DataParallelEngine, TwoTowersGiveTheSameRows) {
  // Larger than a tile of 640 pixels: cut into tiles. Smaller: a page alone.
  const std::vector<MediaItem> items{image(700, 300), image(90, 120), image(300, 800),
                                     image(64, 64)};
  Engine one = load("deepseek_ocr", 1);
  const std::vector<Embedding> expected = one.encode(items);
  EXPECT_GT(expected[0].rows, expected[1].rows);
  Engine two = load("deepseek_ocr", 2);
  expect_same(two.encode(items), expected);
}

TEST(DataParallelEngine, LongCallsTakeSeveralWindows) {
  Engine one = load("qwen3_vl", 1);
  const MediaItem seen = image(64, 64);
  const Embedding known = one.encode({&seen, 1}).front();
  std::vector<MediaItem> items;
  for (std::int64_t i = 0; i < 300; ++i) {
    items.push_back(i % 3 == 0 ? precomputed(known) : image(32 + 32 * (i % 4), 32 + i % 64));
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
  const std::vector<MediaItem> items{image(64, 64), image_file("missing.jpg"), image(96, 64),
                                     image(64, 96)};
  const EncodeOptions skip{.on_error = OnError::kSkip};
  const std::vector<Embedding> rows = load("qwen3_vl", 3).encode(items, skip);
  EXPECT_TRUE(rows[1].error);
  expect_same(rows, load("qwen3_vl", 1).encode(items, skip));
}

TEST(DataParallelEngine, AKeptItemHoldsNothingOfItsBatch) {
  std::vector<Embedding> kept;
  {
    Engine engine = load("qwen3_vl", 3);
    std::vector<Embedding> batch = engine.encode(
        std::vector<MediaItem>{image(640, 480), image(64, 64), image(320, 64), image(96, 96)});
    kept.push_back(std::move(batch[1]));  // what a cache does with one item of a batch
  }
  // Neither the batch nor the engine is there any more.
  const Embedding& item = kept.front();
  EXPECT_EQ(item.data.size(), static_cast<std::size_t>(item.rows * item.width) * sizeof(float));
  const MediaItem alone = image(64, 64);
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

TEST(DataParallelEngine, TimesAVideoThatAllReplicasShare) {
  Engine engine = Engine::load(test::golden_folder("qwen3_vl", "golden.safetensors"),
                               {.device = "cpu",
                                .data_parallel_size = 2,
                                .num_threads = 2,
                                .packing = PackingPolicy::kUnits});
  (void)time_tower(engine, {.patches = 144, .num_frames = 8}, 0, 1);
  for (const ReplicaStats& replica : engine.replica_stats()) {
    EXPECT_EQ(replica.stats.paths[0].live_rows, 2 * 36) << replica.device;
  }
}

TEST(DataParallelEngine, TimesTheTowerOverAllReplicas) {
  Engine engine = load("qwen3_vl", 2);
  const TowerTiming timing = time_tower(engine, {.count = 3, .patches = 64}, 0, 2);
  EXPECT_EQ(timing.patches, 192);
  EXPECT_EQ(timing.budget, 64);  // two images of 16 tokens on one replica, one on the other
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

TEST(DataParallelEngine, BalancesTheAttentionOfLargeImagesToo) {
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
  refused("cpu", -1, "data_parallel_size: expected at least 0, got -1");
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
