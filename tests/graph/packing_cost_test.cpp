// Packing for the least total cost: what a plan costs, and which plans are found.
#include <gtest/gtest.h>

#include <vector>

#include "graph/budgets.h"
#include "graph/packing.h"

namespace fovea {
namespace {

using Budgets = std::vector<std::vector<std::int64_t>>;

std::vector<ItemSpec> specs_of(const std::vector<std::int64_t>& tokens) {
  std::vector<ItemSpec> items;
  for (const std::int64_t count : tokens) {
    items.push_back(
        {.input_rows = 4 * count, .out_rows = count, .num_seqs = 1, .path_tokens = {count}});
  }
  return items;
}

/// A plan of some items with what it is made by.
struct CostPlan {
  CostPlan(const std::vector<std::int64_t>& tokens, Budgets path_budgets,
           std::int64_t max_items = 64)
      : items(specs_of(tokens)),
        budgets(std::move(path_budgets)),
        limits{.path_budgets = budgets, .max_items = max_items, .max_frames = 1'000'000},
        costs(PackingCosts::from_budgets(budgets)) {
    pack_by_cost(items, limits, costs, packing);
  }

  [[nodiscard]] double cost() const { return total_cost(packing, limits, costs); }
  /// Indices of the items of each sub-batch.
  [[nodiscard]] std::vector<std::vector<std::int64_t>> members() const {
    std::vector<std::vector<std::int64_t>> all;
    for (const SubBatch& batch : packing.batches) {
      all.emplace_back();
      for (const PackedItem& packed : packing.items(batch)) all.back().push_back(packed.item);
    }
    return all;
  }

  std::vector<ItemSpec> items;
  Budgets budgets;
  PackingLimits limits;
  PackingCosts costs;
  Packing packing;
};

using Members = std::vector<std::vector<std::int64_t>>;

TEST(PackingCost, PlansCheaperThanAnyCutOfTheSortedItems) {
  const Budgets budgets{generate_budgets(64, 4096)};
  EXPECT_EQ(CostPlan({300, 300, 800, 1196}, budgets).cost(), 3072);
  // No contiguous cut of the sorted items reaches this one.
  EXPECT_EQ(CostPlan({64, 1196, 256, 1000}, budgets).cost(), 3072);
}

TEST(PackingCost, OversizedItemsRunAlone) {
  const CostPlan plan({5000, 60, 4}, {generate_budgets(64, 4096)});
  EXPECT_EQ(plan.members(), (Members{{2, 1}, {0}}));
  EXPECT_EQ(plan.packing.batches[0].budgets[0], 64);
  EXPECT_FALSE(plan.packing.batches[1].budgets[0]);
  EXPECT_EQ(plan.cost(), 64 + 1.25 * 5000) << "what no budget holds costs its tokens";
}

TEST(PackingCost, HandlesEmptyAndZeroLoads) {
  EXPECT_TRUE(CostPlan({}, {{16, 64}}, 4).packing.batches.empty());
  const CostPlan nothing({0}, {{16, 64}}, 4);
  EXPECT_EQ(nothing.members(), (Members{{0}}));
  EXPECT_EQ(nothing.cost(), 0);
}

TEST(PackingCost, ReplacesThePlanThatThePackingHeld) {
  CostPlan plan({60, 4}, {{16, 64}}, 4);
  pack_by_cost(std::span(plan.items).first(1), plan.limits, plan.costs, plan.packing);
  EXPECT_EQ(plan.members(), (Members{{0}}));
}

TEST(PackingCost, FollowsPricesAndNotSizes) {
  CostPlan plan({16, 16, 16, 16}, {{16, 64}});
  plan.costs.paths[0].replay[1].high.cost = 40;  // four small replays cost 64
  pack_by_cost(plan.items, plan.limits, plan.costs, plan.packing);
  EXPECT_EQ(plan.members().size(), 1U);
  plan.costs.paths[0].replay[1].high.cost = 100;
  pack_by_cost(plan.items, plan.limits, plan.costs, plan.packing);
  EXPECT_EQ(plan.members().size(), 4U);
  EXPECT_EQ(plan.cost(), 64);
}

TEST(LoadCost, IsThatOfTheBudgetWithoutALowLoad) {
  const LoadCost cost{.high = {.tokens = 64, .cost = 8}};
  EXPECT_EQ(cost.at(1), 8);
  EXPECT_EQ(cost.at(64), 8);
}

TEST(LoadCost, LiesBetweenTheTwoThatWereMeasured) {
  const LoadCost cost{.low = {.tokens = 16, .cost = 2}, .high = {.tokens = 64, .cost = 8}};
  EXPECT_EQ(cost.at(8), 2) << "below the low load";
  EXPECT_EQ(cost.at(16), 2);
  EXPECT_EQ(cost.at(40), 5);
  EXPECT_EQ(cost.at(64), 8);
  EXPECT_EQ(cost.at(100), 8);
}

}  // namespace
}  // namespace fovea
