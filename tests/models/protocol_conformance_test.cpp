// What every model must do behind the encoder graph protocol. Runs on each golden folder that holds
// a checkpoint; a new model is tested without touching this file.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "graph/capture/forward_cost.h"
#include "graph/graph_config.h"
#include "graph/input_block.h"
#include "models/golden_model.h"
#include "support/expect_error.h"

namespace fovea {
namespace {

using namespace test;  // NOLINT: the models and items are those of these tests

class Conformance : public GoldenModelTest {};

TEST_P(Conformance, DeclaresAUsableGraphSpec) {
  const GraphSpec& spec = m_.model->graph_spec();
  EXPECT_FALSE(spec.modalities.empty());
  EXPECT_GT(spec.main_width, 0);
  EXPECT_EQ(spec.out_width % spec.main_width, 0) << "the main embedding and whole levels";
  ASSERT_FALSE(spec.paths.empty());
  ASSERT_LE(spec.paths.size(), static_cast<std::size_t>(kMaxPaths));
  std::set<std::string> names;
  for (const PathSpec& path : spec.paths) {
    EXPECT_TRUE(names.insert(path.name).second) << path.name;
    EXPECT_GE(path.unit, 1);
  }
  const BudgetRange range = budget_range(spec, 8192);
  EXPECT_GT(range.min, 0);
  EXPECT_LE(range.min, range.max);
  EXPECT_LE(range.max, 8192);
}

TEST_P(Conformance, RefusesMorePixelsThanOffsetsReach) {
  constexpr std::size_t kMost = std::size_t{1} << 31;
  std::mt19937 random(1);
  const PreparedItem item = random_item(processor().plan_image(640, 480), random);
  const ItemPart whole = ItemPart::whole(item, 0);
  const std::vector<ItemPart> parts(kMost / whole.pixels().size() + 1, whole);
  std::vector<InputWriter::Copy> copies;
  InputWriter writer({}, copies);
  expect_error(ErrorCode::kInvalidArgument, "expected at most 2147483647 bytes",
               [&] { m_.model->fill_inputs(0, {}, parts, writer); });
}

TEST_P(Conformance, PlansAreArithmeticAndAgreeWithThePlanner) {
  const auto planner = plan_model(m_.files, {});
  for (const auto& [width, height] : kSizes) {
    const ItemPlan plan = processor().plan_image(width, height);
    const ItemPlan again = planner->processor().plan_image(width, height);
    EXPECT_EQ(plan.spec.path_tokens, again.spec.path_tokens);
    EXPECT_EQ(plan.grid, again.grid);
    EXPECT_GT(plan.spec.out_rows, 0);
    EXPECT_GT(plan.spec.input_rows, 0);
    EXPECT_GT(plan.pixel_bytes, 0u);
    for (std::size_t path = 0; path < m_.model->graph_spec().paths.size(); ++path) {
      EXPECT_EQ(plan.spec.path_tokens[path] % m_.model->graph_spec().paths[path].unit, 0);
    }
  }
  EXPECT_THROW((void)processor().plan_image(0, 10), Error);
}

TEST_P(Conformance, AGridAloneGivesThePlanOfItsImage) {
  const auto expect_same = [&](const ItemPlan& plan) {
    const ItemPlan again = processor().plan_grid(plan.modality, plan.grid);
    EXPECT_EQ(again.modality, plan.modality);
    EXPECT_EQ(again.grid, plan.grid);
    EXPECT_TRUE(again.has_grid_thw);
    EXPECT_EQ(again.layout, PixelLayout::kPatches);
    EXPECT_EQ(again.resized_width_px, plan.resized_width_px);
    EXPECT_EQ(again.resized_height_px, plan.resized_height_px);
    EXPECT_EQ(again.source_width_px, 0);
    EXPECT_EQ(again.spec.input_rows, plan.spec.input_rows);
    EXPECT_EQ(again.spec.out_rows, plan.spec.out_rows);
    EXPECT_EQ(again.spec.num_seqs, plan.spec.num_seqs);
    EXPECT_EQ(again.spec.path_tokens, plan.spec.path_tokens);
    EXPECT_GE(again.pixel_bytes, plan.pixel_bytes);  // a repeated frame may be kept
    EXPECT_LT(again.pixel_bytes, 2 * plan.pixel_bytes + 1);
  };
  if (!processor().plan_image(64, 64).has_grid_thw) {
    expect_error(ErrorCode::kUnsupported, "no pixel values", [&] {
      (void)processor().plan_grid(Modality::kImage, {1, 4, 4});
    });
    expect_error(ErrorCode::kUnsupported, "no pixel values",
                 [&] { processor().fill_pixel_values({}, {}, {}); });
    return;
  }
  for (const auto& [width, height] : kSizes) expect_same(processor().plan_image(width, height));
  if (m_.takes_videos()) {
    for (const std::int64_t frames : {1, 2, 5}) expect_same(processor().plan_video(frames, 96, 64));
  }
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  for (const std::array<std::int64_t, 3>& grid :
       {std::array<std::int64_t, 3>{0, 4, 4}, {1, 0, 4}, {1, 4, -4}, {1, kHuge, kHuge}}) {
    expect_error(ErrorCode::kInvalidArgument, "grid_thw",
                 [&] { (void)processor().plan_grid(Modality::kVideo, grid); });
  }
}

TEST_P(Conformance, BuffersGrowWithCapacityAndHaveUniqueNames) {
  for (PathId path = 0; path < m_.num_paths(); ++path) {
    const std::int64_t unit = m_.model->graph_spec().paths[static_cast<std::size_t>(path)].unit;
    const InputLayout small(m_.model->inputs(path, {2 * unit, 1, 1}));
    const InputLayout large(m_.model->inputs(path, {64 * unit, 8, 8}));
    EXPECT_LT(small.bytes(), large.bytes());
    EXPECT_EQ(small.decls().size(), large.decls().size());
    EXPECT_GT(m_.model->path_width(path), 0);
  }
}

TEST_P(Conformance, WorkGrowsWithTokensAndPlannerCountsTheSame) {
  const auto planner = plan_model(m_.files, {});
  for (PathId path = 0; path < m_.num_paths(); ++path) {
    const std::int64_t unit = m_.model->graph_spec().paths[static_cast<std::size_t>(path)].unit;
    const ForwardCost small = measure_forward(*m_.model, *m_.device, path, {unit * 16, 16, 16});
    const ForwardCost large = measure_forward(*m_.model, *m_.device, path, {unit * 32, 32, 32});
    EXPECT_GT(small.flops, 0);
    EXPECT_GT(large.flops, small.flops);
    EXPECT_GE(large.arena_bytes, small.arena_bytes);
    EXPECT_EQ(measure_forward(*planner, *m_.device, path, {unit * 16, 16, 16}).flops, small.flops);
  }
}

// The one property everything rests on: an item's rows are the same bits alone or packed, eager or
// replayed, whatever budgets there are and whatever the memory held before.
TEST_P(Conformance, RowsAreTheSameBitsHoweverTheyAreRun) {
  const std::vector<PreparedItem> storage = random_items(m_);
  const std::vector<const PreparedItem*> items = pointers(storage);
  const RowBytes alone = m_.run_alone(items);
  const std::int64_t top = m_.num_paths() > 1 ? 1088 : 512;
  for (const std::int64_t largest : {top / 4, top, 4 * top}) {
    SCOPED_TRACE(largest);
    const auto is_too_small = [&](const PathSpec& path) { return path.min_token_budget > largest; };
    if (std::ranges::any_of(m_.model->graph_spec().paths, is_too_small)) continue;
    GraphManagerOptions options;
    options.max_num_batched_tokens = largest;
    options.missing = MissingGraph::kCapture;
    GraphManager manager(*m_.model, *m_.device, options);
    EXPECT_EQ(m_.run(manager, items, true), alone) << "eager, packed";
    manager.fill_memory_with_nan();
    EXPECT_EQ(m_.run(manager, items, false), alone) << "replay over memory full of NaN";
    const bool fits = std::ranges::any_of(storage, [&](const PreparedItem& item) {
      return std::ranges::max(item.plan.spec.path_tokens) <= largest;
    });
    const Stats stats = manager.stats();
    EXPECT_TRUE(!fits || stats.graph_hits + stats.graph_partial > 0);
    const bool one_batch_a_run = stats.sub_batches == 2;
    if (one_batch_a_run) break;  // more tokens would pack them no differently
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Conformance, ::testing::ValuesIn(supported_golden_models()),
                         folder_name);

}  // namespace
}  // namespace fovea
