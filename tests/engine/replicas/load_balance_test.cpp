// Which replica gets which item: the table of the specification, and what holds for any sizes.
#include "engine/replicas/load_balance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <ostream>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "support/expect_error.h"
#include "support/property.h"

namespace fovea {
namespace {

using Sizes = std::vector<std::int64_t>;
using Order = std::vector<std::size_t>;

/// A worked case, named by what it states.
struct WorkedCase {
  const char* name;
  Sizes sizes;
  std::size_t replicas;
  Order order;
  Order counts;
  Sizes loads;
};

void PrintTo(const WorkedCase& worked, std::ostream* out) {  // NOLINT: GoogleTest looks for it
  *out << ::testing::PrintToString(worked.sizes) << " over " << worked.replicas;
}

class WorkedAssignment : public ::testing::TestWithParam<WorkedCase> {};

TEST_P(WorkedAssignment, IsLargestFirstToTheLeastLoadedReplica) {
  const WorkedCase& worked = GetParam();
  const Assignment got = balance_load(worked.sizes, worked.replicas);
  EXPECT_EQ(got.order, worked.order);
  EXPECT_EQ(got.counts, worked.counts);
  EXPECT_EQ(got.loads, worked.loads);
}

INSTANTIATE_TEST_SUITE_P(
    LoadBalance, WorkedAssignment,
    ::testing::Values(
        WorkedCase{"AnItemLargerThanAllOthersRunsAlone",
                   {1000, 100, 200, 50},
                   2,
                   {0, 2, 1, 3},
                   {1, 3},
                   {1000, 350}},
        WorkedCase{"ReplicasStayEmptyWithoutItems", {100}, 4, {0}, {1, 0, 0, 0}, {100, 0, 0, 0}},
        WorkedCase{"EqualItemsKeepTheirOrder", {5, 5, 5, 5}, 2, {0, 2, 1, 3}, {2, 2}, {10, 10}},
        WorkedCase{
            "TwoReplicasMayBalanceExactly", {7, 5, 4, 3, 1}, 2, {0, 3, 1, 2, 4}, {2, 3}, {10, 10}},
        WorkedCase{"ThreeReplicasDifferByTheSmallestItem",
                   {7, 5, 4, 3, 1},
                   3,
                   {0, 1, 4, 2, 3},
                   {1, 2, 2},
                   {7, 6, 7}},
        WorkedCase{
            "LargestFirstMayMissTheOptimum", {3, 3, 2, 2, 2}, 2, {0, 2, 4, 1, 3}, {3, 2}, {7, 5}},
        WorkedCase{"ItemsWithoutRowsGoToTheEmptyReplica", {0, 0, 4}, 2, {2, 0, 1}, {1, 2}, {4, 0}},
        WorkedCase{"TwentyEqualItemsGoRoundTheReplicas",
                   Sizes(20, 576),
                   4,
                   {0, 4, 8, 12, 16, 1, 5, 9, 13, 17, 2, 6, 10, 14, 18, 3, 7, 11, 15, 19},
                   {5, 5, 5, 5},
                   {2880, 2880, 2880, 2880}},
        WorkedCase{"NoItemsAreNoLoad", {}, 3, {}, {0, 0, 0}, {0, 0, 0}}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(LoadBalance, SharesAreCutFromTheOrder) {
  const Assignment got = balance_load(Sizes{7, 5, 4, 3, 1}, 4);
  EXPECT_TRUE(std::ranges::equal(got.items(0), Order{0}));
  EXPECT_TRUE(std::ranges::equal(got.items(1), Order{1}));
  EXPECT_TRUE(std::ranges::equal(got.items(2), Order{2}));
  EXPECT_TRUE(std::ranges::equal(got.items(3), (Order{3, 4})));
  EXPECT_TRUE(balance_load(Sizes{7}, 2).items(1).empty());
}

TEST(LoadBalance, OneReplicaTakesAll) {
  const Assignment got = balance_load(Sizes{1, 3, 2}, 1);
  EXPECT_EQ(got.order, (Order{1, 2, 0}));
  EXPECT_EQ(got.loads, Sizes{6});
}

TEST(AssignItems, AttentionOfLongSequencesCounts) {
  const std::vector<ItemSpec> items{{.input_rows = 1000, .num_seqs = 1},
                                    {.input_rows = 1100, .num_seqs = 11},
                                    {.input_rows = 500, .num_seqs = 5}};
  GraphSpec spec;
  EXPECT_EQ(assign_items(spec, items, 2).loads, (Sizes{1100, 1500}));
  spec.attention_parity_rows = 1000;
  const Assignment got = assign_items(spec, items, 2);
  EXPECT_EQ(got.loads, (Sizes{2000, 1100 + 110 + 500 + 50}));
  EXPECT_EQ(got.order, (Order{0, 1, 2}));
}

TEST(AssignItems, OneReplicaTakesThemAsTheyCome) {
  const std::vector<ItemSpec> items{{.input_rows = 1}, {.input_rows = 3}, {.input_rows = 2}};
  EXPECT_EQ(assign_items({}, items, 1).order, (Order{0, 1, 2}));
}

/// A video of so many temporal patches, each of four tokens.
ItemSpec clip_of(std::int64_t patches) {
  ItemSpec spec{.input_rows = 16 * patches, .out_rows = 4 * patches, .num_seqs = patches};
  spec.path_tokens[0] = spec.out_rows;
  spec.units[0] = {patches, 16, 4};
  return spec;
}

/// "0[0-4] 0[5-9]+ 1": items, with the units of shares; "+" marks those that do not count.
std::string pieces_of(std::span<const ItemSpec> items, std::size_t replicas,
                      std::int64_t parity_rows = 0) {
  GraphSpec spec;
  spec.attention_parity_rows = parity_rows;
  std::ostringstream text;
  for (const ItemPiece& piece : cut_items(spec, items, replicas)) {
    if (text.tellp() > 0) text << ' ';
    text << piece.item;
    const auto& [first, count] = piece.share.units;
    if (count > 0) text << '[' << first << '-' << first + count - 1 << ']';
    if (!piece.share.counts) text << '+';
  }
  return std::move(text).str();
}

TEST(CutItems, ALargeItemIsSharedByAll) {
  const std::vector<ItemSpec> one{clip_of(10)};
  EXPECT_EQ(pieces_of(one, 1), "0");
  EXPECT_EQ(pieces_of(one, 2), "0[0-4] 0[5-9]+");
  EXPECT_EQ(pieces_of(one, 3), "0[0-2] 0[3-5]+ 0[6-9]+");
  EXPECT_EQ(pieces_of({}, 2), "");
}

TEST(CutItems, AUnitIsNotCut) {
  EXPECT_EQ(pieces_of(std::vector{clip_of(3)}, 8), "0[0-0] 0[1-1]+ 0[2-2]+");
  EXPECT_EQ(pieces_of(std::vector{clip_of(1)}, 8), "0");
}

// 200 units over two replicas: more than 25 are shared.
TEST(CutItems, ItemsUpToAFourthOfAShareStayWhole) {
  EXPECT_EQ(pieces_of(std::vector{clip_of(25), clip_of(26), clip_of(149)}, 2),
            "0 1[0-12] 1[13-25]+ 2[0-73] 2[74-148]+");
}

// Of 8 tokens of a page and 12 tokens of tiles, of which rows of both are made.
TEST(CutItems, WhatHasTwoPathsStaysWhole) {
  ItemSpec page = clip_of(5);
  page.path_tokens = {8, 12};
  page.units = {{{2, 16, 4}, {3, 16, 4}}};
  EXPECT_EQ(pieces_of(std::vector{page, clip_of(4)}, 2), "0 1[0-1] 1[2-3]+");
}

TEST(CutItems, WhatHasRowsBesideItsUnitsStaysWhole) {
  ItemSpec tiled = clip_of(6);
  ++tiled.out_rows;  // a separator
  EXPECT_EQ(pieces_of(std::vector{tiled}, 2), "0");
}

TEST(CutItems, AttentionOfLongSequencesMakesAnItemLarge) {
  std::vector<ItemSpec> items{clip_of(2), clip_of(20)};
  items[0].num_seqs = 1;  // 32 rows that attend to each other; 320 in frames of 16
  EXPECT_EQ(pieces_of(items, 2), "0 1[0-9] 1[10-19]+");
  EXPECT_EQ(pieces_of(items, 2, 2), "0[0-0] 0[1-1]+ 1[0-9] 1[10-19]+");
}

TEST(CutItemsProperty, SharesCoverEachItemOnceAndDifferByOneUnit) {
  test::for_all(500, [](auto& random) {
    std::vector<ItemSpec> items(static_cast<std::size_t>(test::uniform(random, 0, 20)));
    for (ItemSpec& item : items) item = clip_of(test::uniform(random, 1, 300));
    const auto replicas = test::uniform(random, 1, 9);
    const std::vector<ItemPiece> pieces =
        cut_items(GraphSpec(), items, static_cast<std::size_t>(replicas));
    std::size_t next = 0;
    for (std::size_t i = 0; i < items.size(); ++i) {
      const std::int64_t units = items[i].units[0].count;
      std::int64_t shares = 0;
      std::int64_t covered = 0;
      for (; next < pieces.size() && pieces[next].item == i; ++next, ++shares) {
        const ItemShare& share = pieces[next].share;
        EXPECT_EQ(share.counts, shares == 0);
        if (share.units.count == 0) {
          covered += units;
          continue;
        }
        EXPECT_EQ(share.units.first, covered);
        EXPECT_GE(share.units.count, units / std::min(replicas, units));
        EXPECT_LE(share.units.count, units / std::min(replicas, units) + 1);
        covered += share.units.count;
      }
      EXPECT_EQ(covered, units);
      EXPECT_TRUE(shares == 1 || shares == std::min(replicas, units));
    }
    EXPECT_EQ(next, pieces.size());
  });
}

TEST(LoadBalance, NoReplicaAndNegativeSizesAreRefused) {
  test::expect_error(ErrorCode::kInvalidArgument, "at least one replica",
                     [] { (void)balance_load(Sizes{1}, 0); });
  test::expect_error(ErrorCode::kInvalidArgument, "size of item 1 must be >= 0, got -2", [] {
    (void)balance_load(Sizes{1, -2}, 2);
  });
}

TEST(LoadBalanceProperty, EveryItemOnceAndNoLoadAboveMeanPlusLargest) {
  test::for_all(500, [](auto& random) {
    Sizes sizes(static_cast<std::size_t>(test::uniform(random, 0, 40)));
    for (std::int64_t& size : sizes) size = test::uniform(random, 0, 1000);
    const auto replicas = static_cast<std::size_t>(test::uniform(random, 1, 9));
    const Assignment got = balance_load(sizes, replicas);

    Order all = got.order;
    std::ranges::sort(all);
    Order expected(sizes.size());
    std::iota(expected.begin(), expected.end(), std::size_t{0});
    EXPECT_EQ(all, expected);

    std::int64_t total = 0;
    for (std::size_t r = 0; r < replicas; ++r) {
      std::int64_t load = 0;
      for (const std::size_t item : got.items(r)) load += sizes[item];
      EXPECT_EQ(load, got.loads[r]);
      total += load;
    }
    const std::int64_t largest = sizes.empty() ? 0 : std::ranges::max(sizes);
    const auto count = static_cast<std::int64_t>(replicas);
    EXPECT_LE(std::ranges::max(got.loads), (total + count - 1) / count + largest);
  });
}

}  // namespace
}  // namespace fovea
