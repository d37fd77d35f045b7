// From images to views of PaliGemma.
#include "models/paligemma/processor.h"

#include <gtest/gtest.h>

#include "models/config_files.h"
#include "support/expect_error.h"

namespace fovea::paligemma {
namespace {

TEST(PaliGemmaProcessor, AnImageOfAnySizeIsOneView) {
  Config config;
  config.tower.view = {.side_px = 224, .patch_px = 14};
  const Processor processor(read_processing(test::config_files({}), config, {}));
  for (const auto& [width, height] : {std::pair{1, 1}, std::pair{4000, 30}, std::pair{224, 224}}) {
    const ItemPlan plan = processor.plan_image(width, height);
    EXPECT_EQ(plan.grid, (std::array<std::int64_t, 3>{1, 1, 1}));
    EXPECT_EQ(plan.spec.out_rows, 256);
    EXPECT_EQ(plan.spec.input_rows, 256);
    EXPECT_EQ(plan.pixel_bytes, 224U * 224 * 3);
    EXPECT_EQ(plan.resized_width_px, 224);
    EXPECT_EQ(plan.target_height_px, 224);
  }
  test::expect_error(ErrorCode::kInvalidArgument, "has no area",
                     [&] { (void)processor.plan_image(0, 4); });
}

}  // namespace
}  // namespace fovea::paligemma
