// Planning by sizes alone: what items become, which share a graph, and what runs without one.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "fovea/fovea.h"
#include "support/expect_error.h"
#include "support/golden.h"
#include "support/property.h"

namespace fovea {
namespace {

using Indices = std::vector<std::int64_t>;

std::string model_dir() { return test::golden_folder("qwen3_vl", "golden.safetensors"); }

/// A plan on the CPU; graphs with budgets of 64 and 512 tokens unless `options` say otherwise.
PackingPlan plan_of(const std::vector<ItemSize>& sizes, EngineOptions options = {}) {
  options.device = "cpu";
  if (options.graphs.encoder_cudagraph_token_budgets.empty())
    options.graphs.encoder_cudagraph_token_budgets = {64, 512};
  return plan(model_dir(), sizes, options);
}

MediaItem image(std::int64_t width_px, std::int64_t height_px) {
  return image_rgb(std::vector<std::uint8_t>(static_cast<std::size_t>(width_px * height_px * 3)),
                   width_px, height_px, "image");
}

TEST(Plan, SaysWhatItemsBecome) {
  const PackingPlan plan = plan_of({{640, 480, 1}, {64, 96, 5}});
  ASSERT_EQ(plan.items.size(), 2u);
  EXPECT_EQ(plan.items[0].name, "640x480");
  EXPECT_EQ(plan.items[0].modality, Modality::kImage);
  EXPECT_EQ(plan.items[0].grid_thw, (std::array<std::int64_t, 3>{1, 30, 40}));
  EXPECT_EQ(plan.items[0].patches, 1200);
  EXPECT_EQ(plan.items[0].rows, 300);
  EXPECT_EQ(plan.items[1].name, "64x96x5f");
  EXPECT_EQ(plan.items[1].modality, Modality::kVideo);
  EXPECT_EQ(plan.items[1].num_frames, 5);
}

TEST(Plan, GivesEveryItemToOneSubBatchWithTheSmallestBudgetThatHoldsIt) {
  const PackingPlan plan = plan_of({{640, 480, 1}, {64, 64, 1}, {64, 64, 1}});
  EXPECT_EQ(plan.paths, std::vector<std::string>{"default"});
  EXPECT_EQ(plan.token_budgets, std::vector<Indices>{(Indices{64, 512})});
  ASSERT_EQ(plan.batches.size(), 1u);
  EXPECT_TRUE(std::ranges::is_permutation(plan.batches[0].items, Indices{0, 1, 2}));
  EXPECT_EQ(plan.batches[0].tokens, Indices{308});
  EXPECT_EQ(plan.batches[0].budgets.front(), 512);
}

TEST(Plan, AnItemBeyondEveryBudgetRunsEagerly) {
  const PackingPlan plan =
      plan_of({{640, 480, 1}}, {.graphs = {.encoder_cudagraph_token_budgets = {64}}});
  ASSERT_EQ(plan.batches.size(), 1u);
  EXPECT_EQ(plan.batches[0].tokens, Indices{300});
  EXPECT_FALSE(plan.batches[0].budgets.front());
}

TEST(Plan, WithoutGraphsThereAreNoBudgets) {
  const PackingPlan plan = plan_of({{64, 64, 1}}, {.graphs = {.cudagraph_mm_encoder = false}});
  EXPECT_EQ(plan.token_budgets, std::vector<Indices>{{}});
  EXPECT_EQ(plan.max_items_per_batch, 0);
  ASSERT_EQ(plan.batches.size(), 1u);
  EXPECT_FALSE(plan.batches[0].budgets.front());
}

TEST(Plan, VideosThatGraphsDoNotServeRunApart) {
  const PackingPlan plan = plan_of({{64, 64, 2}, {64, 64, 1}},
                                   {.graphs = {.encoder_cudagraph_max_frames_per_batch = 0}});
  ASSERT_EQ(plan.batches.size(), 2u);
  EXPECT_EQ(plan.batches[0].items, Indices{1});
  EXPECT_EQ(plan.batches[0].budgets.front(), 64);
  EXPECT_EQ(plan.batches[1].items, Indices{0});
  EXPECT_FALSE(plan.batches[1].budgets.front());
}

TEST(Plan, ReplicasShareThePatches) {
  const PackingPlan plan =
      plan_of({{640, 480, 1}, {64, 64, 1}, {640, 480, 1}}, {.data_parallel_size = 2});
  EXPECT_EQ(plan.replica_patches, (Indices{1216, 1200}));
  ASSERT_EQ(plan.batches.size(), 2u);
  EXPECT_EQ(plan.batches[0].replica, 0);
  EXPECT_EQ(plan.batches[1].replica, 1);
}

TEST(Plan, OfNoSizesIsEmpty) {
  const PackingPlan plan = plan_of({});
  EXPECT_TRUE(plan.items.empty());
  EXPECT_TRUE(plan.batches.empty());
}

class PlanOfAnEngine : public ::testing::Test {
 protected:
  Engine engine_ = Engine::load(model_dir(), {.device = "cpu", .num_threads = 2});
};

TEST_F(PlanOfAnEngine, HasTheRowsThatItEncodes) {
  const std::vector<ItemSize> sizes{{640, 480, 1}, {100, 76, 6}, {64, 64, 1}};
  const PackingPlan plan = engine_.plan(sizes);
  ASSERT_EQ(plan.items.size(), 3u);
  const MediaItem item = image(640, 480);
  EXPECT_EQ(plan.items[0].rows, engine_.encode({&item, 1}).front().rows);
  std::vector<int> seen(3);
  for (const PlannedBatch& batch : plan.batches) {
    for (const std::int64_t index : batch.items) ++seen[static_cast<std::size_t>(index)];
  }
  EXPECT_EQ(seen, (std::vector<int>{1, 1, 1}));
  EXPECT_EQ(fovea::plan(model_dir(), sizes).batches.size(), plan.batches.size());
}

TEST_F(PlanOfAnEngine, HasTheSubBatchesThatItEncodes) {
  std::vector<ItemSize> sizes;
  std::vector<MediaItem> items;
  for (std::int64_t i = 0; i < 150; ++i) {
    sizes.push_back({64 + 32 * (i % 3), 64, 1});
    items.push_back(image(sizes.back().width_px, 64));
  }
  const PackingPlan plan = engine_.plan(sizes);
  (void)engine_.encode(items);
  EXPECT_EQ(engine_.stats().sub_batches, std::ssize(plan.batches));
  ASSERT_EQ(plan.batches.front().items.size(), 64u);
  for (std::int64_t i = 0; i < 50; ++i) {  // the smallest of the whole call run first
    EXPECT_EQ(plan.batches.front().items[static_cast<std::size_t>(i)], 3 * i);
  }
  EXPECT_EQ(fovea::plan(model_dir(), sizes, {.device = "cpu"}).batches.size(), plan.batches.size());
}

TEST(Plan, BeginsAsTheDeviceThatIsNamed) {
  const std::vector<ItemSize> sizes(100, ItemSize{64, 64, 1});
  const auto sizes_of_batches = [&](const std::string& device) {
    std::vector<std::size_t> counts;
    for (const PlannedBatch& batch : plan(model_dir(), sizes, {.device = device}).batches) {
      counts.push_back(batch.items.size());
    }
    return counts;
  };
  EXPECT_EQ(sizes_of_batches("cuda"), (std::vector<std::size_t>{16, 64, 20}));
  EXPECT_EQ(sizes_of_batches("cpu"), (std::vector<std::size_t>{64, 36}));
}

TEST(Plan, AReplayTakesAsManyItemsAsItIsAllowed) {
  const std::vector<ItemSize> sizes(300, ItemSize{64, 64, 1});
  const PackingPlan plan =
      plan_of(sizes, {.graphs = {.encoder_cudagraph_token_budgets = {256, 512, 1024},
                                 .encoder_cudagraph_max_vision_items_per_batch = 200}});
  ASSERT_EQ(plan.batches.size(), 2u);
  EXPECT_EQ(plan.batches[0].items.size(), 200u);
}

TEST_F(PlanOfAnEngine, HasNoSizesThatItRefusesToRead) {
  const auto expect_refused = [&](const ItemSize& size, const std::string& message) {
    test::expect_error(ErrorCode::kInvalidArgument, message, [&] {
      (void)engine_.plan({&size, 1});
    });
  };
  expect_refused({1'000'000, 1'000'000, 1},
                 "1000000x1000000: expected sides of at most 65535 pixels, got 1000000 x 1000000");
  expect_refused({20'000, 10'000, 4},
                 "20000x10000x4f: expected at most 178956970 pixels, got 20000 x 10000");
  expect_refused({64, 64, 2049}, "64x64x2049f: expected at most 2048 frames, got 2049");
}

TEST(Plan, PaddingIsWhatGraphsOfWholeUnitsHave) {
  // Three tiles take 300 tokens; the largest budget of tiles, 350, has room for whole tiles: 300.
  Engine engine = Engine::load(test::golden_folder("deepseek_ocr", "golden.safetensors"),
                               {.device = "cpu", .num_threads = 2, .max_num_batched_tokens = 350});
  const PackingPlan plan = engine.plan(std::vector<ItemSize>{{.width_px = 1920, .height_px = 640}});
  ASSERT_EQ(plan.batches.size(), 1U);
  EXPECT_EQ(plan.batches[0].budgets[1], 350);
  EXPECT_EQ(plan.batches[0].tokens[1], 300);
  EXPECT_EQ(plan.batches[0].padded, (std::vector<std::int64_t>{0, 0}));
  (void)engine.encode(std::vector<MediaItem>{image(1920, 640)});
  const Stats stats = engine.stats();
  EXPECT_EQ(stats.graph_hits, 1);
  for (std::size_t path = 0; path < 2; ++path) {
    EXPECT_EQ(stats.paths[path].padded_rows, plan.batches[0].padded[path]);
  }
}

TEST(Plan, OneListOfBudgetsForTwoPathsIsNeverWorseThanInferredOnes) {
  for (const auto& [family, smallest] : {std::pair{"deepseek_ocr", 272}, {"step3_vl", 169}}) {
    const std::string model = test::golden_folder(family, "golden.safetensors");
    for (const ItemSize& size : {ItemSize{90, 120}, {700, 300}, {1920, 1080}, {3000, 3000}}) {
      const auto plan_with = [&, budget = smallest](bool one_list) {
        EngineOptions options{.device = "cpu"};
        if (one_list) options.graphs.encoder_cudagraph_token_budgets = {budget, budget + 300};
        return plan(model, {&size, 1}, options).batches.front();
      };
      const PlannedBatch given = plan_with(true);
      const PlannedBatch inferred = plan_with(false);
      for (std::size_t path = 0; path < 2; ++path) {
        if (!inferred.budgets[path]) continue;
        ASSERT_TRUE(given.budgets[path]) << family << ' ' << size.width_px;
        EXPECT_LE(*given.budgets[path], *inferred.budgets[path]) << family << ' ' << size.width_px;
      }
    }
  }
}

TEST(Plan, OnlyReplaysArePadded) {
  const std::vector<ItemSize> sizes{{.width_px = 320, .height_px = 320},   // 100 tokens
                                    {.width_px = 640, .height_px = 640}};  // 400
  const PackingPlan plan =
      fovea::plan(model_dir(), sizes,
                  {.device = "cpu",
                   .graphs = {.encoder_cudagraph_token_budgets = {128},
                              .encoder_cudagraph_max_vision_items_per_batch = 8}});
  ASSERT_EQ(plan.batches.size(), 2U);
  EXPECT_EQ(plan.batches[0].padded, std::vector<std::int64_t>{28});
  EXPECT_FALSE(plan.batches[1].budgets[0]);
  EXPECT_EQ(plan.batches[1].padded, std::vector<std::int64_t>{0});
}

TEST(Plan, PackedByUnitsEveryUnitRunsOnceOnOneOfTheReplicas) {
  test::for_all(200, [](auto& random) {
    EngineOptions options{.packing = PackingPolicy::kUnits};
    options.data_parallel_size = static_cast<int>(test::uniform(random, 1, 4));
    options.graphs.cudagraph_mm_encoder = test::uniform(random, 0, 4) > 0;
    std::vector<ItemSize> sizes(static_cast<std::size_t>(test::uniform(random, 1, 12)));
    for (ItemSize& size : sizes) {
      size = {.width_px = test::uniform(random, 64, 400), .height_px = 32};
      if (test::uniform(random, 0, 1) == 0) size.num_frames = test::uniform(random, 2, 90);
    }
    const PackingPlan plan = plan_of(sizes, options);
    std::vector<std::vector<int>> runs;  // of each unit of each item
    std::int64_t patches = 0;
    for (const ItemInfo& item : plan.items) {
      runs.emplace_back(static_cast<std::size_t>(item.units[0].count));
      patches += item.patches;
    }
    for (const PlannedBatch& batch : plan.batches) {
      ASSERT_TRUE(batch.units.empty() || batch.units.size() == batch.items.size());
      std::int64_t tokens = 0;
      for (std::size_t i = 0; i < batch.items.size(); ++i) {
        const auto item = static_cast<std::size_t>(batch.items[i]);
        const ItemUnits& all = plan.items[item].units[0];
        const UnitRange units = batch.units.empty() ? UnitRange{0, all.count} : batch.units[i];
        ASSERT_LE(units.first + units.count, all.count);
        for (std::int64_t k = 0; k < units.count; ++k) {
          ++runs[item][static_cast<std::size_t>(units.first + k)];
        }
        tokens += units.count * all.rows;
      }
      EXPECT_EQ(batch.tokens, Indices{tokens});
    }
    for (const std::vector<int>& item : runs) {
      EXPECT_EQ(std::ranges::count(item, 1), std::ssize(item));
    }
    EXPECT_EQ(std::reduce(plan.replica_patches.begin(), plan.replica_patches.end()), patches);
  });
}

TEST(Plan, ReplicasShareALongVideo) {
  const PackingPlan plan = plan_of({{64, 64, 1}, {640, 480, 60}},
                                   {.data_parallel_size = 3, .packing = PackingPolicy::kUnits});
  const std::int64_t unit = plan.items[1].units[0].patches;
  EXPECT_EQ(plan.replica_patches, (Indices{10 * unit + 16, 10 * unit, 10 * unit}));
  for (const PlannedBatch& batch : plan.batches) EXPECT_TRUE(batch.budgets[0]);
}

TEST(Plan, AVideoOfOneFrameIsAVideo) {
  Engine engine = Engine::load(model_dir(), {.device = "cpu", .num_threads = 2});
  const std::vector<ItemSize> sizes{{.width_px = 96, .height_px = 64, .modality = Modality::kVideo},
                                    {.width_px = 96, .height_px = 64}};
  const PackingPlan plan = engine.plan(sizes);
  const std::vector<Embedding> rows = engine.encode(std::vector<MediaItem>{
      video_rgb(std::vector<std::uint8_t>(std::size_t{3 * 96 * 64}), 1, 96, 64, 2.0, "clip"),
      image(96, 64)});
  EXPECT_EQ(rows[0].rows, 70);  // videos are enlarged to more pixels than images
  EXPECT_EQ(rows[1].rows, 6);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(plan.items[i].rows, rows[i].rows);
    EXPECT_EQ(plan.items[i].modality, rows[i].modality);
  }
  EXPECT_EQ(plan.items[0].name, "96x64x1f");
  EXPECT_EQ(plan.items[1].name, "96x64");
  EXPECT_EQ(plan.items[0].units, (std::vector<ItemUnits>{{1, 280, 70}}));
  EXPECT_EQ(plan.items[1].units, (std::vector<ItemUnits>{{1, 24, 6}}));
}

}  // namespace
}  // namespace fovea
