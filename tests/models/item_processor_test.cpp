// What a processor answers that overrides only what still images need, and the parts of items.
#include "fovea/tower/models/item_processor.h"

#include <gtest/gtest.h>

#include <numeric>

#include "support/expect_error.h"

namespace fovea {
namespace {

class ImagesOnly final : public ItemProcessor {
 public:
  [[nodiscard]] ItemPlan plan_image(std::int64_t, std::int64_t) const override { return {}; }
  void fill_frame(const ItemPlan&, std::int64_t, const RgbView&,
                  std::span<std::uint8_t>) const override {}
};

TEST(ItemProcessor, TakesNoVideosUnlessOverridden) {
  const ImagesOnly processor;
  test::expect_error(ErrorCode::kUnsupported, "the model takes no videos",
                     [&] { (void)processor.plan_video(2, 64, 64); });
  test::expect_error(ErrorCode::kUnsupported, "the model takes no videos",
                     [&] { (void)processor.sample_frames(100, 25, 2); });
}

TEST(ItemProcessor, TakesNoPixelValuesUnlessOverridden) {
  const ImagesOnly processor;
  test::expect_error(ErrorCode::kUnsupported, "the model takes images, no pixel values", [&] {
    (void)processor.plan_grid(Modality::kImage, {1, 4, 4});
  });
  test::expect_error(ErrorCode::kUnsupported, "the model takes images, no pixel values",
                     [&] { processor.fill_pixel_values({}, {}, {}); });
}

TEST(ItemProcessor, AnItemIsOneUnitUnlessItsFamilyNamesOthers) {
  ItemSpec spec{.input_rows = 24, .out_rows = 6};
  EXPECT_EQ(units_of(spec), (std::vector<ItemUnits>{{1, 24, 6}}));
  spec.units[1] = {3, 8, 2};
  EXPECT_EQ(units_of(spec), (std::vector<ItemUnits>{{3, 8, 2}}));
}

/// Three units of 4 bytes on one path, two of 3 bytes on another.
PreparedItem cut_item() {
  PreparedItem item;
  item.plan.spec = {.input_rows = 3 * 8 + 2 * 5,
                    .out_rows = 3 * 2 + 2 * 1,
                    .num_seqs = 3,
                    .path_tokens = {6, 2},
                    .units = {{{3, 8, 2}, {2, 5, 1}}}};
  item.plan.unit_bytes = {4, 3};
  item.pixels.resize(3 * 4 + 2 * 3);
  std::iota(item.pixels.begin(), item.pixels.end(), std::uint8_t{0});
  return item;
}

std::vector<std::uint8_t> pixels_of(const ItemPart& part) {
  return {part.pixels().begin(), part.pixels().end()};
}

TEST(ItemPart, CountsWhatItsUnitsMake) {
  const PreparedItem item = cut_item();
  const ItemPart part{.item = &item, .path = 0, .first = 1, .count = 2};
  EXPECT_EQ(part.patches(), 16);
  EXPECT_EQ(part.tokens(), 4);
  EXPECT_EQ(part.seqs(), 2);
  EXPECT_EQ(ItemPart::whole(item, 0).seqs(), 3);
  EXPECT_EQ(ItemPart::whole(item, 0).patches(), 24);
  EXPECT_EQ(ItemPart::whole(item, 1).count, 2);
  EXPECT_EQ(ItemPart::whole(item, 1).tokens(), 2);
}

TEST(ItemPart, TheUnitsOfAnItemThatCountsOneSequenceCountOneTogether) {
  PreparedItem item = cut_item();
  item.plan.spec.num_seqs = 1;  // tiles: the tokens of a graph bound their number
  EXPECT_EQ((ItemPart{.item = &item, .path = 0, .first = 0, .count = 2}.seqs()), 1);
  EXPECT_EQ(ItemPart::whole(item, 0).seqs(), 1);
}

TEST(ItemPart, HasTheBytesOfItsUnitsPathAfterPath) {
  const PreparedItem item = cut_item();
  EXPECT_EQ(pixels_of({.item = &item, .path = 0, .first = 0, .count = 1}),
            (std::vector<std::uint8_t>{0, 1, 2, 3}));
  EXPECT_EQ(pixels_of({.item = &item, .path = 0, .first = 2, .count = 1}),
            (std::vector<std::uint8_t>{8, 9, 10, 11}));
  EXPECT_EQ(pixels_of({.item = &item, .path = 1, .first = 0, .count = 1}),
            (std::vector<std::uint8_t>{12, 13, 14}));
  EXPECT_EQ(pixels_of(ItemPart::whole(item, 1)),
            (std::vector<std::uint8_t>{12, 13, 14, 15, 16, 17}));
}

TEST(ItemPart, TheVeryLastUnitMayHaveFewerBytes) {
  PreparedItem item = cut_item();
  item.plan.spec.units[1] = {};
  item.plan.spec.path_tokens[1] = 0;
  item.pixels.resize(10);
  EXPECT_EQ(pixels_of({.item = &item, .path = 0, .first = 2, .count = 1}),
            (std::vector<std::uint8_t>{8, 9}));
  EXPECT_EQ(pixels_of({.item = &item, .path = 0, .first = 1, .count = 2}),
            (std::vector<std::uint8_t>{4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(ItemPart::whole(item, 1).count, 0) << "it does not take the path";
}

TEST(ItemPart, AnItemWithoutUnitsIsOneThatHasAllBytes) {
  PreparedItem item = cut_item();
  item.plan.spec.units = {};
  item.plan.unit_bytes = {};
  const ItemPart whole = ItemPart::whole(item, 0);
  EXPECT_EQ(whole.units(), (ItemUnits{1, 34, 6}));
  EXPECT_EQ(whole.count, 1);
  EXPECT_EQ(whole.seqs(), 3);
  EXPECT_EQ(pixels_of(whole), item.pixels);
  EXPECT_EQ(ItemPart::whole(item, 2).count, 0);
}

TEST(ItemProcessor, AssumesNothingUnlessOverridden) { EXPECT_EQ(ImagesOnly().assumptions(), ""); }

}  // namespace
}  // namespace fovea
