// Ten thousand random workloads over random configurations: whatever was packed, replayed or run
// eagerly, each row has the bits that the item gets alone.
#include <gtest/gtest.h>

#include <array>

#include "graph/harness.h"
#include "support/property.h"

namespace fovea {
namespace {

using namespace test;  // NOLINT: the harness is written for these tests

constexpr int kConfigurations = 1000;
constexpr int kWorkloads = 10;  // per configuration

template <class Random>
GraphManagerOptions random_options(Random& random) {
  GraphManagerOptions options;
  if (uniform(random, 0, 2) > 0) {
    const std::int64_t count = uniform(random, 1, 4);
    for (std::int64_t i = 0; i < count; ++i) {
      options.user.encoder_cudagraph_token_budgets.push_back(uniform(random, 4, 90));
    }
  }
  options.user.encoder_cudagraph_max_vision_items_per_batch = uniform(random, 0, 4);
  if (uniform(random, 0, 1) == 0) {
    options.user.encoder_cudagraph_max_frames_per_batch = uniform(random, 0, 12);
  }
  constexpr std::array kPolicies{PackingPolicy::kGreedy, PackingPolicy::kCost,
                                 PackingPolicy::kUnits, PackingPolicy::kUnits};
  options.packing = kPolicies[static_cast<std::size_t>(uniform(random, 0, 3))];
  options.reuse_units = uniform(random, 0, 3) > 0;
  options.missing = uniform(random, 0, 1) == 0 ? MissingGraph::kRunEager : MissingGraph::kCapture;
  return options;
}

/// Items are counted once each.
void expect_counted(const Stats& stats, std::int64_t items) {
  EXPECT_EQ(stats.graph_hits + stats.graph_partial + stats.graph_misses + stats.skipped, items);
  std::int64_t reasons = 0;
  for (const auto& [reason, count] : stats.miss_reasons) reasons += count;
  EXPECT_EQ(reasons, stats.graph_partial + stats.graph_misses);
}

TEST(GraphProperty, EveryRowEqualsTheItemAlone) {
  for_all(kConfigurations, [](auto& random) {
    const bool byte_pixels = uniform(random, 0, 1) == 1;
    MockHarness h(MockModel({.hidden = 4, .width = 6, .byte_pixels = byte_pixels}),
                  random_options(random));
    if (uniform(random, 0, 3) > 0) h.manager.capture();
    std::int64_t items = 0;
    for (int workload = 0; workload < kWorkloads; ++workload) {
      if (uniform(random, 0, 3) == 0) h.manager.fill_memory_with_nan();
      std::vector<Grid> grids(static_cast<std::size_t>(uniform(random, 0, 9)));
      for (Grid& grid : grids) {
        grid = {uniform(random, 0, 3) == 0 ? uniform(random, 1, 6) : 1, 2 * uniform(random, 0, 6),
                2 * uniform(random, 1, 6)};
      }
      h.expect_right(mock_batch(h.model, grids, random()));
      items += static_cast<std::int64_t>(grids.size());
    }
    expect_counted(h.manager.stats(), items);
  });
}

TEST(GraphProperty, EveryRowOfTwoPathsEqualsTheItemAlone) {
  for_all(100, [](auto& random) {
    GraphManagerOptions options = random_options(random);
    for (std::int64_t& budget : options.user.encoder_cudagraph_token_budgets) budget *= 30;
    options.user.encoder_cudagraph_token_budgets.push_back(2720);
    DualHarness h(DualModel(uniform(random, 272, 3000)), options);
    if (uniform(random, 0, 3) > 0) h.manager.capture();
    std::int64_t count = 0;
    for (int workload = 0; workload < 3; ++workload) {
      std::vector<PreparedItem> items(static_cast<std::size_t>(uniform(random, 0, 5)));
      for (PreparedItem& item : items) {
        item = uniform(random, 0, 1) == 0
                   ? h.model.make_crop(uniform(random, 1, 3), uniform(random, 1, 3), random())
                   : h.model.make_plain(uniform(random, 0, 900), uniform(random, 0, 900), random());
      }
      count += static_cast<std::int64_t>(items.size());
      h.expect_right(Batch(std::move(items)));
    }
    expect_counted(h.manager.stats(), count);
  });
}

}  // namespace
}  // namespace fovea
