// Packing of random items: what holds for every plan, and that plans by cost are never worse.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "graph/budgets.h"
#include "graph/packing.h"
#include "support/property.h"

namespace fovea {
namespace {

/// Random items, limits and budgets of one or two paths.
struct Workload {
  std::vector<ItemSpec> items;
  std::vector<std::vector<std::int64_t>> budgets;
  PackingLimits limits;
};

template <class Random>
void make_workload(Random& random, std::int64_t max_count, Workload& w) {
  const bool dual = test::uniform(random, 0, 1) == 1;
  w.budgets = {generate_budgets(test::uniform(random, 1, 100), test::uniform(random, 100, 4000))};
  if (dual) {
    w.budgets.push_back(
        generate_budgets(test::uniform(random, 1, 100), test::uniform(random, 100, 4000)));
    w.budgets.back().insert(w.budgets.back().begin(), 0);
  }
  const std::int64_t largest = test::uniform(random, 10, 4500);  // sometimes above every budget
  w.items.resize(static_cast<std::size_t>(test::uniform(random, 0, max_count)));
  for (ItemSpec& entry : w.items) {
    entry.num_seqs = test::uniform(random, 0, 1) == 0 ? 1 : test::uniform(random, 2, 20);
    entry.path_tokens[0] = test::uniform(random, 0, largest);
    if (dual)
      entry.path_tokens[1] = test::uniform(random, 0, 1) * test::uniform(random, 0, largest);
  }
  w.limits = {.path_budgets = w.budgets,
              .max_items = test::uniform(random, 1, 64),
              .max_frames = test::uniform(random, 1, 200)};
}

/// Whether every item appears once, every sub-batch of several items respects every limit, and
/// loads and budgets are what the members say.
void expect_valid(const Workload& w, const Packing& packing) {
  std::vector<std::int64_t> seen;
  for (const PackedItem& packed : packing.order) {
    EXPECT_FALSE(packed.path);
    seen.push_back(packed.item);
  }
  std::sort(seen.begin(), seen.end());
  std::vector<std::int64_t> all(w.items.size());
  std::iota(all.begin(), all.end(), 0);
  ASSERT_EQ(seen, all);
  std::int64_t begin = 0;
  for (const SubBatch& batch : packing.batches) {
    ASSERT_EQ(batch.begin, begin);
    ASSERT_GT(batch.count, 0);
    begin += batch.count;
    ItemSpec sum;
    for (const PackedItem& packed : packing.items(batch)) {
      const ItemSpec& member = w.items[static_cast<std::size_t>(packed.item)];
      sum.num_seqs += member.num_seqs;
      for (std::size_t p = 0; p < kMaxPaths; ++p) sum.path_tokens[p] += member.path_tokens[p];
    }
    EXPECT_EQ(batch.load, sum.path_tokens);
    EXPECT_EQ(batch.seqs, sum.num_seqs);
    const bool has_video = sum.num_seqs > batch.count;
    EXPECT_EQ(batch.too_many_seqs, has_video && sum.num_seqs > w.limits.max_frames);
    for (std::size_t p = 0; p < w.budgets.size(); ++p) {
      const auto budget = batch.load[p] == 0 ? std::optional<std::int64_t>(0)
                                             : find_budget(batch.load[p], w.budgets[p]);
      EXPECT_EQ(batch.budgets[p], budget);
      if (batch.count > 1) {
        EXPECT_TRUE(budget.has_value());
      }
    }
    if (batch.count > 1) {
      EXPECT_LE(batch.count, w.limits.max_items);
      EXPECT_LE(batch.seqs, has_video ? w.limits.max_frames : w.limits.max_items);
    }
  }
  EXPECT_EQ(begin, static_cast<std::int64_t>(w.items.size()));
}

TEST(PackingProperty, GreedyPlansAreValidAndDeterministic) {
  test::for_all(2000, [](auto& random) {
    Workload w;
    make_workload(random, 80, w);
    Packing first;
    Packing second;
    pack_greedy(w.items, w.limits, first);
    pack_greedy(w.items, w.limits, second);
    expect_valid(w, first);
    EXPECT_EQ(first.order, second.order);
  });
}

TEST(PackingProperty, PlansByCostAreNeverWorseThanGreedyOnes) {
  double greedy_total = 0;
  double cost_total = 0;
  test::for_all(1000, [&](auto& random) {
    Workload w;
    make_workload(random, 64, w);
    // Random prices as well: measured times are neither linear nor monotonic.
    PackingCosts costs = PackingCosts::from_budgets(w.budgets);
    for (PathCost& path : costs.paths) {
      for (LoadCost& price : path.replay) {
        price.high.cost += static_cast<double>(test::uniform(random, 0, 200));
        price.low = {.tokens = price.high.tokens / 2, .cost = price.high.cost / 2};
      }
    }
    Packing greedy_plan;
    Packing cost_plan;
    Packing again;
    pack_greedy(w.items, w.limits, greedy_plan);
    pack_by_cost(w.items, w.limits, costs, cost_plan);
    pack_by_cost(w.items, w.limits, costs, again);
    expect_valid(w, cost_plan);
    EXPECT_EQ(cost_plan.order, again.order);
    EXPECT_LE(total_cost(cost_plan, w.limits, costs), total_cost(greedy_plan, w.limits, costs));
    greedy_total += total_cost(greedy_plan, w.limits, costs);
    cost_total += total_cost(cost_plan, w.limits, costs);
  });
  EXPECT_LT(cost_total, greedy_total);
  RecordProperty("cost_over_greedy", std::to_string(cost_total / greedy_total));
}

TEST(PackingCost, PlansAThousandMixedSizes) {
  std::mt19937_64 random(7);
  Workload w;
  w.budgets = {generate_budgets(64, 8192)};
  w.limits = {.path_budgets = w.budgets, .max_items = 64, .max_frames = 2048};
  for (int i = 0; i < 1000; ++i) {
    w.items.push_back({.num_seqs = 1, .path_tokens = {test::uniform(random, 4, 4096)}});
  }
  const PackingCosts costs = PackingCosts::from_budgets(w.budgets);
  Packing greedy_plan;
  Packing cost_plan;
  pack_greedy(w.items, w.limits, greedy_plan);
  pack_by_cost(w.items, w.limits, costs, cost_plan);
  expect_valid(w, cost_plan);
  EXPECT_LE(total_cost(cost_plan, w.limits, costs), total_cost(greedy_plan, w.limits, costs));
}
}  // namespace
}  // namespace fovea
