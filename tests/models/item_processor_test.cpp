// What a processor answers that overrides only what still images need.
#include "fovea/tower/models/item_processor.h"

#include <gtest/gtest.h>

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

TEST(ItemProcessor, AssumesNothingUnlessOverridden) { EXPECT_EQ(ImagesOnly().assumptions(), ""); }

}  // namespace
}  // namespace fovea
