// The order of a call: what is packed with what, what is prepared with what, and what comes first.
#include "engine/call_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "support/property.h"

namespace fovea {
namespace {

using Sizes = std::vector<std::optional<ItemPlan>>;
using Indices = std::vector<std::size_t>;

std::optional<ItemPlan> item(std::int64_t tokens, Modality modality = Modality::kImage) {
  ItemPlan plan;
  plan.modality = modality;
  plan.spec = {.input_rows = 4 * tokens, .out_rows = tokens, .num_seqs = 1};
  plan.spec.path_tokens[0] = tokens;
  plan.pixel_bytes = static_cast<std::size_t>(tokens);
  return plan;
}

/// Items of 1 to `most` tokens.
Sizes random_sizes(std::mt19937_64& random, std::size_t count, std::int64_t most) {
  Sizes sizes;
  for (std::size_t i = 0; i < count; ++i) sizes.push_back(item(test::uniform(random, 1, most)));
  return sizes;
}

/// A video of so many temporal patches.
std::optional<ItemPlan> video(std::int64_t patches, std::int64_t tokens) {
  std::optional<ItemPlan> plan = item(patches * tokens);
  plan->spec.num_seqs = patches;
  plan->spec.units[0] = {patches, 4 * tokens, tokens};
  return plan;
}

Indices items_of(const CallBatch& batch) {
  Indices items;
  for (const PackedItem& packed : batch.items) {
    items.push_back(static_cast<std::size_t>(packed.item));
  }
  return items;
}

class CallPlan : public ::testing::Test {
 protected:
  [[nodiscard]] CallLimits limits() const {
    return {.spec = spec_,
            .config = config_,
            .packing = packing_,
            .num_replicas = replicas_,
            .on_host = on_host_,
            .window_bytes = window_bytes_};
  }
  [[nodiscard]] std::vector<CallWindow> order(const Sizes& sizes) const {
    return order_call(limits(), sizes);
  }
  /// Numbers of items in the windows of a call.
  [[nodiscard]] Indices counts(const Sizes& sizes) const {
    Indices counts;
    for (const CallWindow& window : order(sizes)) counts.push_back(window.items.size());
    return counts;
  }

  GraphSpec spec_{.modalities = {Modality::kImage}};
  GraphConfig config_{.token_budgets = {64, 512},
                      .max_items = 8,
                      .max_frames = 8,
                      .max_seqs = 8,
                      .path_budgets = {{64, 512}}};
  PackingPolicy packing_ = PackingPolicy::kGreedy;
  std::size_t replicas_ = 1;
  bool on_host_ = true;
  std::size_t window_bytes_ = 1 << 20;
};

TEST_F(CallPlan, AShortCallRunsAsItComes) {
  for (const auto& [on_host, items] : {std::pair{true, 64U}, {false, 31U}}) {
    on_host_ = on_host;
    const std::vector<CallWindow> windows = order(Sizes(items));  // nobody asks for its sizes
    ASSERT_EQ(windows.size(), 1U);
    Indices all(items);
    std::iota(all.begin(), all.end(), std::size_t{0});
    EXPECT_EQ(windows[0].items, all);
    EXPECT_TRUE(windows[0].replicas.empty());
    EXPECT_EQ(head_items(limits(), Sizes(items + 1)), on_host ? 0U : 16U);
  }
}

TEST_F(CallPlan, ALongCallIsPackedAsAWhole) {
  config_.path_budgets = {{64, 128, 256, 512}};
  Sizes sizes(100, item(64));
  sizes[3] = item(512);
  sizes[90] = item(1);
  const auto batches = pack_call(limits(), sizes);
  ASSERT_EQ(batches.size(), 1U);
  ASSERT_EQ(batches[0].size(), 14U);  // 13 of eight items, the smallest of all among them, and one
  EXPECT_EQ(batches[0].front().items.front().item, 90);
  EXPECT_EQ(items_of(batches[0].back()), Indices{3});
  EXPECT_EQ(counts(sizes), (Indices{64, 36}));  // eight sub-batches, then six
}

TEST_F(CallPlan, AWindowHoldsTheLargestSubBatch) {
  config_.max_items = 100;
  config_.path_budgets = {{512}};
  EXPECT_EQ(counts(Sizes(300, item(4))), (Indices{100, 100, 100}));
  on_host_ = false;
  EXPECT_EQ(counts(Sizes(300, item(4))), (Indices{16, 100, 100, 84}));
}

TEST_F(CallPlan, AWindowOfLargeItemsHoldsEightSubBatches) {
  EXPECT_EQ(counts(Sizes(70, item(512))), (Indices{8, 8, 8, 8, 8, 8, 8, 8, 6}));
}

TEST_F(CallPlan, AWindowHoldsAsManyBytesAsItMay) {
  for (const std::size_t bytes : {1U, 1024U, 1100U}) {
    window_bytes_ = bytes;
    const std::size_t most = bytes == 1 ? 1 : 2;  // one sub-batch in any case
    EXPECT_EQ(counts(Sizes(4, item(512))), Indices(4 / most, most)) << "a short call";
    EXPECT_EQ(counts(Sizes(70, item(512))), Indices(70 / most, most)) << "a long call";
  }
}

TEST_F(CallPlan, ACallThatFitsIntoNoWindowIsPackedAsAWhole) {
  for (const bool on_host : {true, false}) {
    on_host_ = on_host;
    const Sizes sizes{item(300), item(200), item(300), item(200)};
    window_bytes_ = 1000;
    EXPECT_EQ(order(sizes)[0].items, (Indices{0, 1, 2, 3})) << "as it comes";
    window_bytes_ = 999;
    EXPECT_EQ(head_items(limits(), sizes), 0U);
    EXPECT_EQ(order(sizes)[0].items, (Indices{1, 3, 0})) << "the smallest first";
    EXPECT_EQ(counts(sizes), (Indices{3, 1}));
  }
}

TEST_F(CallPlan, ReplicasShareTheBytesOfAWindow) {
  replicas_ = 2;
  window_bytes_ = 1024;
  EXPECT_EQ(counts(Sizes(8, item(512))), Indices(4, 2));
}

TEST_F(CallPlan, AGpuBeginsWithTheFirstItems) {
  on_host_ = false;
  replicas_ = 2;
  Sizes sizes(100, item(64));
  sizes[0] = item(512);
  const std::vector<CallWindow> windows = order(sizes);
  EXPECT_EQ(windows.front().items.size(), 32U);
  EXPECT_EQ(windows.front().items.front(), 0U);
  EXPECT_TRUE(windows.front().replicas.empty());
  EXPECT_FALSE(windows.back().replicas.empty());
}

TEST_F(CallPlan, ItemsOfUnknownSizeComeBeforeTheOthers) {
  Sizes sizes(200, item(64));
  for (std::size_t i = 1; i < 140; i += 2) sizes[i].reset();  // 70 of them
  const std::vector<CallWindow> windows = order(sizes);
  ASSERT_GE(windows.size(), 3U);
  EXPECT_EQ(windows[0].items.size(), 64U);
  EXPECT_EQ(windows[1].items, (Indices{129, 131, 133, 135, 137, 139}));
  EXPECT_TRUE(windows[1].replicas.empty());
  EXPECT_EQ(windows[2].items.front(), 0U);
}

TEST_F(CallPlan, WhatGraphsDoNotServeRunsApart) {
  Sizes sizes(100, item(8));
  sizes[0] = item(8, Modality::kVideo);
  const auto batches = pack_call(limits(), sizes);
  EXPECT_FALSE(batches[0].back().replayed);
  EXPECT_EQ(items_of(batches[0].back()), Indices{0});
  EXPECT_TRUE(batches[0].front().replayed);
}

/// The windows without replicas, each by its items.
std::vector<Indices> unassigned(const std::vector<CallWindow>& windows) {
  std::vector<Indices> items;
  for (const CallWindow& window : windows) {
    if (window.replicas.empty()) items.push_back(window.items);
  }
  return items;
}

TEST_F(CallPlan, WhatReplicasShareHasNoReplica) {
  Sizes sizes(200, item(64));
  sizes[7] = video(100, 60);
  sizes[9] = video(10, 64);  // 1/20 of all, and a share is half
  for (const std::size_t replicas : {1, 2, 3}) {
    SCOPED_TRACE(replicas);
    replicas_ = replicas;
    packing_ = PackingPolicy::kUnits;
    const std::vector<Indices> shared =
        replicas == 1 ? std::vector<Indices>() : std::vector<Indices>{{7}};
    EXPECT_EQ(unassigned(order(sizes)), shared);
    packing_ = PackingPolicy::kGreedy;
    EXPECT_TRUE(unassigned(order(sizes)).empty()) << "it stays whole";
  }
}

TEST_F(CallPlan, WhatIsLongerThanAWindowHasNoReplica) {
  Sizes sizes(200, item(64));
  sizes[7] = video(100, 60);
  sizes[8].reset();
  window_bytes_ = 100 * 60;
  packing_ = PackingPolicy::kUnits;
  EXPECT_EQ(unassigned(order(sizes)), (std::vector<Indices>{{8}}));
  window_bytes_ -= 1;
  EXPECT_EQ(unassigned(order(sizes)), (std::vector<Indices>{{7, 8}})) << "it comes first";
  packing_ = PackingPolicy::kGreedy;
  EXPECT_EQ(unassigned(order(sizes)), (std::vector<Indices>{{8}})) << "it is prepared as a whole";
}

TEST_F(CallPlan, ReplicasHaveEqualSharesOfALongVideo) {
  packing_ = PackingPolicy::kUnits;
  replicas_ = 3;
  const auto batches = pack_call(limits(), Sizes{video(100, 60)});
  ASSERT_EQ(batches.size(), 3U);
  std::vector<std::int64_t> units(3);
  for (std::size_t replica = 0; replica < 3; ++replica) {
    for (const CallBatch& batch : batches[replica]) {
      EXPECT_TRUE(batch.sizes.budgets[0]);
      for (const PackedItem& packed : batch.items) units[replica] += packed.units;
    }
  }
  EXPECT_EQ(units, (std::vector<std::int64_t>{34, 33, 33}));  // the largest share goes first
  EXPECT_EQ(batches[0].front().items.front().first_unit, 66);
}

TEST_F(CallPlan, ALongVideoIsCutAndTravelsOnce) {
  packing_ = PackingPolicy::kUnits;
  Sizes sizes(100, item(64));
  sizes[7] = video(100, 60);
  const auto batches = pack_call(limits(), sizes);
  std::int64_t units = 0;
  for (const CallBatch& batch : batches[0]) {
    EXPECT_TRUE(batch.sizes.budgets[0]) << "every sub-batch has a graph";
    for (const PackedItem& packed : batch.items) units += packed.item == 7 ? packed.units : 0;
  }
  EXPECT_EQ(units, 100);
  EXPECT_EQ(counts(sizes), (Indices{1, 64, 35}));
}

TEST_F(CallPlan, ItemsThatWouldLeaveRoomWaitForTheNextWindow) {
  packing_ = PackingPolicy::kUnits;
  config_.max_items = 60;
  config_.path_budgets = {{512}};
  config_.max_frames = 1000;
  const Sizes sizes(100, video(2, 5));  // 51 of them fill 512
  EXPECT_EQ(counts(sizes), (Indices{51, 49}));
}

TEST_F(CallPlan, EveryItemTravelsOnceWithTheReplicaThatItsShareIsPackedFor) {
  test::for_all(200, [&](auto& random) {
    packing_ = test::uniform(random, 0, 1) == 0 ? PackingPolicy::kGreedy : PackingPolicy::kUnits;
    replicas_ = static_cast<std::size_t>(test::uniform(random, 1, 4));
    on_host_ = test::uniform(random, 0, 1) == 0;
    Sizes sizes =
        random_sizes(random, static_cast<std::size_t>(test::uniform(random, 1, 500)), 600);
    for (auto& size : sizes) {
      if (test::uniform(random, 0, 9) == 0) size.reset();
    }
    std::vector<int> seen(sizes.size());
    for (const CallWindow& window : order(sizes)) {
      for (const std::size_t i : window.items) ++seen[i];
      EXPECT_TRUE(window.replicas.empty() || window.replicas.size() == window.items.size());
      EXPECT_TRUE(std::ranges::is_sorted(window.replicas));
    }
    EXPECT_EQ(std::ranges::count(seen, 1), std::ssize(seen));
  });
}

TEST_F(CallPlan, PackingAWindowAgainGivesTheSubBatchesOfTheCall) {
  test::for_all(200, [&](auto& random) {
    const Sizes sizes =
        random_sizes(random, static_cast<std::size_t>(test::uniform(random, 65, 500)), 600);
    std::vector<Indices> again;
    for (const CallWindow& window : order(sizes)) {
      std::vector<ItemSpec> specs;
      for (const std::size_t i : window.items) specs.push_back(sizes[i]->spec);
      const Packing packing = plan_packing(config_, specs, packing_, true, !on_host_);
      for (const SubBatch& batch : packing.batches) {
        Indices& items = again.emplace_back();
        for (const PackedItem& packed : packing.items(batch)) {
          items.push_back(window.items[static_cast<std::size_t>(packed.item)]);
        }
      }
    }
    std::vector<Indices> once;
    const auto batches = pack_call(limits(), sizes);
    for (const CallBatch& batch : batches[0]) once.push_back(items_of(batch));
    EXPECT_EQ(again, once);
  });
}

}  // namespace
}  // namespace fovea
