// Packing of units: where items are cut, which budgets are used, and what it costs.
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "graph/budgets.h"
#include "graph/packing.h"
#include "support/property.h"

namespace fovea {
namespace {

using Budgets = std::vector<std::vector<std::int64_t>>;

ItemSpec image(std::int64_t tokens) {
  return {.input_rows = 4 * tokens, .out_rows = tokens, .num_seqs = 1, .path_tokens = {tokens}};
}

/// Temporal patches, each one sequence.
ItemSpec video(std::int64_t patches, std::int64_t tokens) {
  ItemSpec spec = image(patches * tokens);
  spec.num_seqs = patches;
  spec.units[0] = {patches, 4 * tokens, tokens};
  return spec;
}

/// An image of a page and tiles, one path each.
ItemSpec document(std::int64_t page, std::int64_t tiles, std::int64_t tokens) {
  ItemSpec spec{.input_rows = 4 * (page + tiles * tokens),
                .out_rows = page + tiles * tokens,
                .num_seqs = 1,
                .path_tokens = {page, tiles * tokens}};
  spec.units[0] = {1, 4 * page, page};
  spec.units[1] = {tiles, 4 * tokens, tokens};
  return spec;
}

struct UnitPlan {
  UnitPlan(std::vector<ItemSpec> specs, Budgets lists, std::int64_t max_items = 64,
           std::int64_t max_frames = 1'000'000)
      : items(std::move(specs)),
        budgets(std::move(lists)),
        limits{.path_budgets = budgets, .max_items = max_items, .max_frames = max_frames},
        costs(PackingCosts::from_budgets(budgets)) {
    pack_units(items, limits, costs, packing);
  }

  /// "0[0-2] 1[5] 60->64; 2 81->none": items with their units, load and budget of each sub-batch.
  [[nodiscard]] std::string text() const {
    std::ostringstream text;
    for (const SubBatch& batch : packing.batches) {
      if (batch.begin > 0) text << "; ";
      for (const PackedItem& packed : packing.items(batch)) {
        text << packed.item;
        if (packed.path)
          text << '[' << packed.first_unit << '-' << packed.first_unit + packed.units - 1 << ']';
        text << ' ';
      }
      for (std::size_t path = 0; path < budgets.size(); ++path) {
        if (path > 0) text << '|';
        text << batch.load[path] << "->";
        batch.budgets[path] ? text << *batch.budgets[path] : text << "none";
      }
    }
    return std::move(text).str();
  }

  std::vector<ItemSpec> items;
  Budgets budgets;
  PackingLimits limits;
  PackingCosts costs;
  Packing packing;
};

TEST(PackingUnits, AVideoAboveTheLargestBudgetIsCut) {
  EXPECT_EQ(UnitPlan({video(10, 30)}, {{16, 64, 128}}).text(),
            "0[0-3] 120->128; 0[4-7] 120->128; 0[8-9] 60->64");
}

TEST(PackingUnits, UnitsOfSeveralItemsShareASubBatch) {
  EXPECT_EQ(UnitPlan({video(3, 40), image(40)}, {{64, 128}}).text(),
            "1[0-0] 0[0-1] 120->128; 0[2-2] 40->64");
}

TEST(PackingUnits, ASmallerBudgetThatIsFullAndTheRestCostLessThanALargeOne) {
  EXPECT_EQ(UnitPlan({video(7, 10)}, {{16, 64, 128}}).text(), "0[0-5] 60->64; 0[6-6] 10->16");
  EXPECT_EQ(UnitPlan({video(12, 10)}, {{16, 64, 128}}).text(), "0[0-11] 120->128")
      << "60 in 64 twice cost as much";
}

TEST(PackingUnits, MeasuredCostsSayWhetherASplitPays) {
  UnitPlan plan({video(7, 10)}, {{16, 64, 128}});
  plan.costs.paths[0].replay[2] = {.low = {64, 60}, .high = {128, 120}};  // as live rows cost
  pack_units(plan.items, plan.limits, plan.costs, plan.packing);
  EXPECT_EQ(plan.text(), "0[0-6] 70->128");
}

TEST(PackingUnits, WhereNoPaddingIsComputedBudgetsAreFilledUp) {
  UnitPlan plan({video(103, 391), image(200)}, {generate_budgets(64, 8192)});
  plan.costs = PackingCosts::from_loads(plan.budgets);
  pack_units(plan.items, plan.limits, plan.costs, plan.packing);
  EXPECT_EQ(plan.text(),
            "1[0-0] 0[0-19] 8020->8192; 0[20-39] 7820->8192; 0[40-59] 7820->8192; 0[60-79] "
            "7820->8192; 0[80-99] 7820->8192; 0[100-102] 1173->2048");
}

TEST(PackingUnits, OnlyAUnitThatFitsNowhereRunsAlone) {
  EXPECT_EQ(UnitPlan({image(200), video(2, 150), image(5)}, {{16, 128}}).text(),
            "2[0-0] 5->16; 0[0-0] 200->none; 1[0-0] 150->none; 1[1-1] 150->none");
}

TEST(PackingUnits, AnItemCountsOnceHoweverManyOfItsUnitsRun) {
  EXPECT_EQ(UnitPlan({video(20, 2), video(20, 2), image(4)}, {{64, 128}}, /*max_items=*/2).text(),
            "2[0-0] 0[0-19] 44->64; 1[0-19] 40->64");
}

TEST(PackingUnits, FramesLimitAReplayAndNotAnItem) {
  EXPECT_EQ(UnitPlan({video(10, 4)}, {{16, 64}}, 8, /*max_frames=*/4).text(),
            "0[0-3] 16->16; 0[4-7] 16->16; 0[8-9] 8->16");
}

TEST(PackingUnits, PathsArePackedApart) {
  EXPECT_EQ(UnitPlan({document(20, 3, 30), document(20, 1, 30)}, {{32, 64}, {0, 64, 128}}).text(),
            "1[0-0] 0[0-0] 40->64|0->0; 1[0-0] 0[0-2] 0->0|120->128");
}

TEST(PackingUnits, ItemsOfOneUnitArePackedByTheCheaperGreedyRule) {
  const UnitPlan plan({image(1000), image(64), image(1196), image(256)}, {{64, 256, 1024, 2048}});
  Packing greedy;
  pack_greedy(plan.items, plan.limits, greedy);
  EXPECT_EQ(plan.packing.order, greedy.order);
  EXPECT_EQ(plan.packing.batches.size(), greedy.batches.size());
  // The rule of vLLM 0.32 replays each of these by itself: for the same cost, with more launches.
  const UnitPlan equal(std::vector<ItemSpec>(8, image(64)), {{64, 512}});
  EXPECT_EQ(equal.packing.batches.size(), 1U);
}

TEST(PackingUnits, ItemsWithoutTokensAreThereOnce) {
  EXPECT_EQ(UnitPlan({image(0), video(2, 5)}, {{16}}).text(), "1[0-1] 10->16; 0 0->0");
  EXPECT_EQ(UnitPlan({}, {{16}}).text(), "");
}

/// Every unit once and no other, loads and budgets as the units say, and limits kept by whatever
/// could have been smaller.
void expect_valid(const UnitPlan& plan) {
  std::map<std::pair<std::int64_t, int>, std::int64_t> next;  // unit of an item and path
  for (const SubBatch& batch : plan.packing.batches) {
    ItemSpec sum;
    std::int64_t units = 0;
    for (const PackedItem& packed : plan.packing.items(batch)) {
      const ItemSpec& item = plan.items[static_cast<std::size_t>(packed.item)];
      for (std::size_t p = 0; p < plan.budgets.size(); ++p) {
        const auto path = static_cast<int>(p);
        const ItemUnits all = item.units_on(path);
        if (packed.path && *packed.path != path) continue;
        std::int64_t& first = next[{packed.item, path}];
        if (packed.path) {
          EXPECT_EQ(packed.first_unit, first);
        }
        const std::int64_t count = packed.path ? packed.units : all.count;
        first += count;
        units += count;
        sum.path_tokens[p] += count * all.rows;
        if (packed.path && item.num_seqs > 1) sum.num_seqs += item.num_seqs / all.count * count;
      }
      if (!packed.path || item.num_seqs <= 1) sum.num_seqs += item.num_seqs;
    }
    EXPECT_EQ(batch.load, sum.path_tokens);
    EXPECT_EQ(batch.seqs, sum.num_seqs);
    const bool has_video = sum.num_seqs > batch.count;
    for (std::size_t p = 0; p < plan.budgets.size(); ++p) {
      const auto budget = batch.load[p] == 0 ? std::optional<std::int64_t>(0)
                                             : find_budget(batch.load[p], plan.budgets[p]);
      EXPECT_EQ(batch.budgets[p], budget);
      if (units > 1 && !plan.packing.items(batch).front().path) continue;
      EXPECT_TRUE(budget || units == 1);
    }
    EXPECT_LE(batch.count, plan.limits.max_items);
    if (has_video && units > 1 && plan.packing.items(batch).front().path) {
      EXPECT_LE(batch.seqs, plan.limits.max_frames);
    }
  }
  for (std::size_t i = 0; i < plan.items.size(); ++i) {
    for (std::size_t p = 0; p < plan.budgets.size(); ++p) {
      const auto path = static_cast<int>(p);
      const std::int64_t count = next[{static_cast<std::int64_t>(i), path}];
      EXPECT_EQ(count, plan.items[i].units_on(path).count) << "item " << i << " path " << p;
    }
  }
}

TEST(PackingUnits, RandomPlansAreValidAndNeverWorseThanOnesOfWholeItems) {
  double whole = 0;
  double cut = 0;
  test::for_all(3000, [&](auto& random) {
    const auto up_to = [&](std::int64_t most) { return test::uniform(random, 1, most); };
    const bool dual = up_to(2) == 1;
    Budgets budgets{generate_budgets(up_to(100), 100 + up_to(3000))};
    if (dual) {
      budgets.push_back(generate_budgets(up_to(100), 100 + up_to(3000)));
      budgets.back().insert(budgets.back().begin(), 0);
    }
    std::vector<ItemSpec> items(static_cast<std::size_t>(up_to(30)) - 1);
    for (ItemSpec& item : items) {
      item = dual ? document(up_to(600), up_to(12), up_to(200))
                  : video(up_to(2) == 1 ? 1 : up_to(60), up_to(700));
      if (up_to(20) == 1) item = image(0);
    }
    UnitPlan plan(std::move(items), std::move(budgets), up_to(16), up_to(100));
    for (PathCost& path : plan.costs.paths) {
      if (up_to(2) == 1) continue;  // else measured times, which need not grow with the load
      for (LoadCost& price : path.replay) {
        price.high.cost += static_cast<double>(up_to(200));
        price.low = {.tokens = price.high.tokens / 2, .cost = price.high.cost / 2};
      }
    }
    pack_units(plan.items, plan.limits, plan.costs, plan.packing);
    expect_valid(plan);
    Packing again;
    pack_units(plan.items, plan.limits, plan.costs, again);
    EXPECT_EQ(plan.packing.order, again.order);
    Packing greedy;
    pack_greedy(plan.items, plan.limits, greedy);
    const double cost = total_cost(plan.packing, plan.limits, plan.costs);
    // Fewer runs may cost a little more.
    EXPECT_LE(cost, total_cost(greedy, plan.limits, plan.costs) / kWorthMoreRuns * (1 + 1e-8));
    cut += cost;
    whole += total_cost(greedy, plan.limits, plan.costs);
  });
  EXPECT_LT(cut, whole);
  RecordProperty("units_over_whole_items", std::to_string(cut / whole));
}

TEST(PackingUnits, ReusesTheMemoryOfThePlan) {
  UnitPlan plan({video(100, 30), image(20)}, {{16, 64, 128}});
  const PackedItem* const order = plan.packing.order.data();
  const SubBatch* const batches = plan.packing.batches.data();
  pack_units(plan.items, plan.limits, plan.costs, plan.packing);
  EXPECT_EQ(plan.packing.order.data(), order);
  EXPECT_EQ(plan.packing.batches.data(), batches);
}

}  // namespace
}  // namespace fovea
