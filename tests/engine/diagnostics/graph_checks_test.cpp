// Loads that reach a graph, asked of models.
#include "engine/diagnostics/graph_checks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "graph/capture/graph_set.h"
#include "graph/dual_model.h"
#include "graph/mock_model.h"
#include "graph/packing.h"

namespace fovea {
namespace {

using test::DualModel;
using test::MockModel;
using Tokens = std::vector<std::int64_t>;

GraphConfig config_of(const EncoderGraphModel& model, Tokens budgets, std::int64_t max_items) {
  return graph_config_of(model, 8192,
                         {.user = {.encoder_cudagraph_token_budgets = std::move(budgets),
                                   .encoder_cudagraph_max_vision_items_per_batch = max_items}});
}

Tokens tokens_of(const std::vector<ItemPlan>& plans, std::size_t path) {
  Tokens tokens;
  for (const ItemPlan& plan : plans) tokens.push_back(plan.spec.path_tokens[path]);
  return tokens;
}

TEST(MixedLoad, FillsAGraphWithImagesOfSeveralSizes) {
  const MockModel model;
  const GraphConfig config = config_of(model, {16, 32, 64}, 4);
  EXPECT_EQ(tokens_of(mixed_load(model, config, {.budget = 64}, 64), 0), (Tokens{32, 16, 8, 8}));
  EXPECT_EQ(tokens_of(mixed_load(model, config, {.budget = 16}, 16), 0), (Tokens{8, 4, 2, 2}));
}

TEST(MixedLoad, FillsAPartOfAGraph) {
  const MockModel model;
  const GraphConfig config = config_of(model, {16, 32, 64}, 4);
  EXPECT_EQ(tokens_of(mixed_load(model, config, {.budget = 64}, 48), 0), (Tokens{24, 12, 6, 6}));
}

TEST(MixedLoad, IsOfLargeImagesWherePackingWouldTakeSmallOnesApart) {
  const MockModel model;
  const GraphConfig config = config_of(model, {16, 64}, 4);
  EXPECT_EQ(tokens_of(mixed_load(model, config, {.budget = 64}, 64), 0), (Tokens{64}));
}

TEST(MixedLoad, ExceedsTheNextSmallerBudget) {
  const MockModel model;
  const GraphConfig config = config_of(model, {61, 62, 63, 64}, 2);
  for (const std::int64_t budget : config.token_budgets) {
    const Tokens tokens = tokens_of(mixed_load(model, config, {.budget = budget}, budget), 0);
    EXPECT_EQ(std::accumulate(tokens.begin(), tokens.end(), std::int64_t{0}), budget);
  }
}

TEST(MixedLoad, ReachesEveryGraphOfTwoPathsThatImagesCanLoad) {
  const DualModel model;
  const GraphConfig config = config_of(model, {272, 544, 1088, 2176}, 8);
  for (const GraphKey& key : capture_order(config)) {
    const std::vector<ItemPlan> plans = mixed_load(model, config, key, key.budget);
    const bool one_tile = key.path == 1 && key.budget == 100;  // no image has it
    EXPECT_EQ(plans.empty(), one_tile) << describe(model.graph_spec(), key);
    std::vector<ItemSpec> specs;
    for (const ItemPlan& plan : plans) specs.push_back(plan.spec);
    const Packing packing = plan_packing(config, specs, PackingPolicy::kGreedy);
    if (one_tile) continue;
    ASSERT_EQ(packing.batches.size(), 1U) << describe(model.graph_spec(), key);
    EXPECT_EQ(packing.batches[0].budgets[static_cast<std::size_t>(key.path)], key.budget);
  }
}

}  // namespace
}  // namespace fovea
