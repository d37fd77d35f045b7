// What models over square views answer alike: budgets, and whose pixels a path takes.
#include "models/common/views/model.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "models/common/views/tiles.h"
#include "models/host_inputs.h"

namespace fovea::common {
namespace {

ViewLayout square(std::int64_t side_px, std::int64_t tokens) {
  return {.view = {.side_px = side_px, .patch_px = 2},
          .sequence = {.patches = side_px * side_px / 4},
          .tokens = tokens,
          .stages = {},
          .chunk_stages = {}};
}

/// A whole image of 4 x 4 pixels, and up to 3 tiles of 2 x 2.
class TwoPaths : public ViewModel {
 public:
  TwoPaths()
      : ViewModel({.width = 8,
                   .max_token_budget = 100,
                   .paths = {{.name = "whole", .layout = square(4, 5), .max_item_views = 1},
                             {.name = "tiles",
                              .layout = square(2, 1),
                              .allow_zero_tokens = true,
                              .max_item_views = 3}},
                   .facts = {{"depth", "2"}}},
                  nullptr) {}
  void forward(ExecContext&, PathId, const GraphCapacity&, const NamedTensors&,
               TensorView) const override {}
};

/// An item of a whole image and `tiles` tiles, whose bytes are `value`, and `value` + 1 for tiles.
PreparedItem item(std::int64_t tiles, std::uint8_t value) {
  PreparedItem result;
  const SquareView whole = square(4, 5).view;
  const SquareView tile = square(2, 1).view;
  result.plan = plan_views(4, 4, {.cols = tiles}, {{whole, 1}, {tile, tiles}});
  result.pixels.assign(48, value);
  result.pixels.insert(result.pixels.end(), static_cast<std::size_t>(tiles * 12),
                       static_cast<std::uint8_t>(value + 1));
  return result;
}

/// The bytes that a batch puts into the input "pixels".
std::vector<std::uint8_t> pixels_of(const ViewModel& model, PathId path,
                                    const GraphCapacity& capacity,
                                    const std::vector<ItemPart>& parts) {
  test::HostInputs memory(model.inputs(path, capacity));
  memory.fill([&](InputWriter& writer) { model.fill_inputs(path, capacity, parts, writer); });
  const auto* const bytes = memory.tensors()["pixels"].as<std::uint8_t>();
  return {bytes, bytes + memory.rows_of("pixels")};
}

TEST(ViewModel, TheUnitAndTheSmallestBudgetOfAPathAreTheTokensOfAView) {
  const TwoPaths model;
  const GraphSpec& spec = model.graph_spec();
  EXPECT_EQ(spec.modalities, std::vector{Modality::kImage});
  EXPECT_EQ(spec.out_width, 8);
  EXPECT_EQ(spec.main_width, 8);
  EXPECT_EQ(spec.min_token_budget, 5) << "of the first path";
  EXPECT_EQ(spec.max_token_budget, 100);
  ASSERT_EQ(spec.paths.size(), 2u);
  EXPECT_EQ(spec.paths[0].name, "whole");
  EXPECT_EQ(spec.paths[0].unit, 5);
  EXPECT_EQ(spec.paths[0].min_token_budget, 5);
  EXPECT_EQ(spec.paths[0].max_item_tokens, 5);
  EXPECT_FALSE(spec.paths[0].allow_zero_tokens);
  EXPECT_EQ(spec.paths[1].unit, 1);
  EXPECT_EQ(spec.paths[1].max_item_tokens, 3);
  EXPECT_TRUE(spec.paths[1].allow_zero_tokens);
  EXPECT_EQ(model.facts().front().first, "depth");
}

TEST(ViewModel, AGraphHoldsTheWholeViewsOfItsBudget) {
  const TwoPaths model;
  EXPECT_EQ(model.inputs(0, {.tokens = 14}).back().shape, (Shape{2 * 48}));
  EXPECT_EQ(model.inputs(1, {.tokens = 14}).back().shape, (Shape{14 * 12}));
}

TEST(ViewModel, EveryPathTakesItsOwnPixelsOfEveryItem) {
  const TwoPaths model;
  const std::vector<PreparedItem> items{item(1, 10), item(0, 20), item(2, 30)};
  const auto pixels = [&](PathId path, std::int64_t tokens) {
    return pixels_of(model, path, {.tokens = tokens}, test::whole_items(items, path));
  };
  std::vector<std::uint8_t> whole;
  for (const std::uint8_t value : std::vector<std::uint8_t>{10, 20, 30})
    whole.insert(whole.end(), 48, value);
  EXPECT_EQ(pixels(0, 15), whole);
  std::vector<std::uint8_t> tiles(12, 11);
  tiles.insert(tiles.end(), 24, 31);
  EXPECT_EQ(pixels(1, 4), tiles);
}

TEST(ViewModel, APartOfAnItemHasTheViewsOfItsUnits) {
  const TwoPaths model;
  PreparedItem cut = item(3, 10);
  for (std::size_t i = 0; i < 36; ++i) {
    cut.pixels[48 + i] = static_cast<std::uint8_t>(100 + i / 12);
  }
  std::vector<std::uint8_t> want(24, 101);
  std::fill(want.begin() + 12, want.end(), std::uint8_t{102});
  EXPECT_EQ(pixels_of(model, 1, {.tokens = 2}, {{.item = &cut, .path = 1, .first = 1, .count = 2}}),
            want);
}

}  // namespace
}  // namespace fovea::common
