// Budget lists against the worked examples of the encoder graph specification, section 3.
#include "graph/budgets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "support/expect_error.h"
#include "support/property.h"

namespace fovea {
namespace {

using test::expect_error;
using List = std::vector<std::int64_t>;

PathSpec path(std::int64_t minimum, bool allow_zero = false) {
  return {
      .name = "p", .min_token_budget = minimum, .allow_zero_tokens = allow_zero, .unit = minimum};
}

TEST(Budgets, DoubleFromTheLowestToTheHighest) {
  EXPECT_EQ(generate_budgets(64, 1024), (List{64, 128, 256, 512, 1024}));
}

TEST(Budgets, EndWithTheHighestEvenIfItIsNoDoubling) {
  EXPECT_EQ(generate_budgets(64, 800), (List{64, 128, 256, 512, 800}));
}

TEST(Budgets, LowestEqualToHighestIsOneBudget) { EXPECT_EQ(generate_budgets(64, 64), List{64}); }

TEST(Budgets, DoubleUpToThousandsOfTokens) {
  EXPECT_EQ(generate_budgets(64, 8192), (List{64, 128, 256, 512, 1024, 2048, 4096, 8192}));
  EXPECT_EQ(generate_budgets(64, 4096), (List{64, 128, 256, 512, 1024, 2048, 4096}));
}

TEST(Budgets, LowestAboveTheHighestLeavesTheHighest) { EXPECT_EQ(generate_budgets(5, 3), List{3}); }

TEST(Budgets, DoubleFromAPageOfATwoTowerModel) {
  EXPECT_EQ(generate_budgets(272, 13824), (List{272, 544, 1088, 2176, 4352, 8704, 13824}));
  EXPECT_EQ(generate_budgets(272, 8192), (List{272, 544, 1088, 2176, 4352, 8192}));
}

TEST(Budgets, APathThatMayBeEmptyBeginsWithZero) {
  EXPECT_EQ(path_budgets(path(100, true), List{13824}, {}),
            (List{0, 100, 200, 400, 800, 1600, 3200, 6400, 12800, 13824}));
  EXPECT_EQ(generate_budgets(100, 8192), (List{100, 200, 400, 800, 1600, 3200, 6400, 8192}));
}

TEST(Budgets, TokensTakeTheSmallestBudgetThatHoldsThem) {
  const List budgets{2048, 4096, 8192};
  EXPECT_EQ(find_budget(2048, budgets), 2048);
  EXPECT_EQ(find_budget(100, budgets), 2048);
  EXPECT_EQ(find_budget(0, budgets), 2048);
}

TEST(Budgets, TokensBetweenTwoBudgetsTakeTheLarger) {
  EXPECT_EQ(find_budget(2049, List{2048, 4096, 8192}), 4096);
  EXPECT_EQ(find_budget(4097, List{2048, 4096, 8192}), 8192);
}

TEST(Budgets, TokensAboveAllBudgetsFindNone) {
  EXPECT_EQ(find_budget(9000, List{2048, 4096, 8192}), std::nullopt);
  EXPECT_EQ(find_budget(3000, List{2048}), std::nullopt);
}

TEST(Budgets, NoTokensTakeTheBudgetZero) { EXPECT_EQ(find_budget(0, List{0, 100}), 0); }

TEST(Budgets, CapacityIsWholeUnits) {
  EXPECT_EQ(capacity_of_budget(13824, 100), 13800);
  EXPECT_EQ(capacity_of_budget(13824, 272), 13600);
  EXPECT_EQ(capacity_of_budget(64, 1), 64);
}

TEST(Budgets, DoublingDoesNotOverflow) {
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(generate_budgets(huge / 2, huge), (List{huge / 2, huge - 1, huge}));
}

TEST(Budgets, PathWithoutMinimumCopiesTheList) {
  EXPECT_EQ(path_budgets(PathSpec{}, List{16, 64}, {}), (List{16, 64}));
}

TEST(Budgets, UserBudgetsOfAPathAreCutToUnits) {
  const PathBudgetRules user{.user_budgets = true, .max_items = 8};
  EXPECT_EQ(path_budgets(path(100, true), List{64, 272, 544, 1024}, user),
            (List{0, 100, 200, 500, 1000}));
  // Two budgets that become one after cutting appear once.
  EXPECT_EQ(path_budgets(path(272), List{300, 500, 600}, user), (List{272, 544}));
}

TEST(Budgets, OneListForSeveralPathsIsFilledUpWithDoublings) {
  const PathBudgetRules user{.user_budgets = true, .max_items = 8, .inferred_top = 8192};
  PathSpec local = path(100, true);
  local.max_item_tokens = 900;
  EXPECT_EQ(path_budgets(local, List{272, 550}, user),
            (List{0, 100, 200, 400, 500, 800, 900}));  // the largest item has a budget
  local.max_item_tokens.reset();  // nobody knows the largest item: as far as inferred ones
  EXPECT_EQ(path_budgets(local, List{272}, user),
            (List{0, 100, 200, 400, 800, 1600, 3200, 6400, 8100}));
}

TEST(BudgetsProperty, OneListForSeveralPathsIsNeverWorseThanInferredOnes) {
  test::for_all(500, [](auto& random) {
    PathSpec some = path(test::uniform(random, 1, 300));
    if (test::uniform(random, 0, 1) == 0) {
      some.max_item_tokens = some.unit * test::uniform(random, 1, 40);
    }
    const std::int64_t top = test::uniform(random, 300, 9000);
    List user;
    for (std::int64_t i = test::uniform(random, 1, 6); i > 0; --i) {
      user.push_back(test::uniform(random, 300, 9000));
    }
    sort_unique(user);
    const auto given = path_budgets(some, user, {true, 8, top});
    const auto inferred = path_budgets(some, List{top}, {false, 8, {}});
    const auto largest = some.max_item_tokens.value_or(inferred.back());
    for (std::int64_t load = some.unit; load <= largest; load += some.unit) {
      const auto budget = find_budget(load, inferred);
      if (!budget || capacity_of_budget(*budget, some.unit) < load) continue;  // runs eagerly
      ASSERT_TRUE(find_budget(load, given)) << load;
      EXPECT_LE(*find_budget(load, given), *budget) << load;
    }
  });
}

TEST(Budgets, GivenForAPathAreThoseAlone) {
  EXPECT_EQ(given_path_budgets(path(100, true), List{750, 400, 799}, 8), (List{0, 400, 700}));
  PathSpec global = path(272);
  global.max_item_tokens = 272;
  EXPECT_EQ(given_path_budgets(global, List{272, 816, 5440}, 2), (List{272, 816}));
  expect_error(ErrorCode::kInvalidArgument,
               "path \"p\" must hold a unit of 100 tokens, got [400, 99]", [] {
                 (void)given_path_budgets(path(100), List{400, 99}, 8);
               });
}

TEST(Budgets, UnreachableBudgetsAreDropped) {
  PathSpec global = path(272);
  global.max_item_tokens = 272;
  EXPECT_EQ(path_budgets(global, List{13824}, {.max_items = 8}), (List{272, 544, 1088, 2176}));
  // 9 items need 2448 tokens: the first budget that covers them stays.
  EXPECT_EQ(path_budgets(global, List{13824}, {.max_items = 9}),
            (List{272, 544, 1088, 2176, 4352}));
  // Nothing covers 100 items: nothing is dropped.
  EXPECT_EQ(path_budgets(global, List{13824}, {.max_items = 100}).size(), 7u);
}

TEST(Budgets, MinimumOfAPathMustBePositiveAndWithinTheHighest) {
  for (const std::int64_t minimum : {0, -5}) {
    expect_error(ErrorCode::kInvalidArgument, "Invalid minimum budget of path \"p\"",
                 [&] { (void)path_budgets(path(minimum), List{13824}, {}); });
  }
  expect_error(ErrorCode::kInvalidArgument,
               "expected a token budget of at least 13825, the minimum budget of path \"p\", got "
               "none above 13824",
               [&] { (void)path_budgets(path(13825), List{13824}, {}); });
}

TEST(BudgetsProperty, AscendingUniqueAndClosedByTheCap) {
  test::for_all(500, [](auto& random) {
    const std::int64_t first = test::uniform(random, 1, 5000);
    const std::int64_t last = test::uniform(random, 1, 50000);
    const List budgets = generate_budgets(first, last);
    EXPECT_EQ(budgets.back(), last);
    EXPECT_TRUE(std::adjacent_find(budgets.begin(), budgets.end(), std::greater_equal<>()) ==
                budgets.end());
    const std::int64_t tokens = test::uniform(random, 0, last);
    const auto found = find_budget(tokens, budgets);
    ASSERT_TRUE(found.has_value());
    EXPECT_GE(*found, tokens);
    for (const std::int64_t budget : budgets) EXPECT_TRUE(budget < tokens || budget >= *found);
  });
}

}  // namespace
}  // namespace fovea
