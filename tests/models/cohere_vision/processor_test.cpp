// Tiles of Cohere2-Vision and Aya Vision: numbers of the reference, and what a file may say.
#include "models/cohere_vision/processor.h"

#include <gtest/gtest.h>

#include "models/config_files.h"
#include "support/expect_error.h"

namespace fovea::cohere_vision {
namespace {

Processor processor_of(Format format, std::int64_t side_px, const std::string& file = "") {
  Config config{.format = format};
  config.tower.view = {.side_px = side_px, .patch_px = 1, .merge = 2};
  return Processor(read_processing(test::config_files({.preprocessor = file}), config, {}));
}

struct Case {
  std::int64_t width, height, cols, rows, views;
};

void expect_tilings(const Processor& processor, std::initializer_list<Case> cases) {
  for (const Case& c : cases) {
    SCOPED_TRACE(::testing::Message() << c.width << "x" << c.height);
    const ItemPlan plan = processor.plan_image(c.width, c.height);
    EXPECT_EQ(plan.grid, (std::array<std::int64_t, 3>{1, c.rows, c.cols}));
    EXPECT_EQ(plan.spec.units[0].count, c.views);
  }
}

TEST(CohereVisionProcessor, Cohere2EnlargesImagesLeast) {
  expect_tilings(processor_of(Format::kCohere2, 512),
                 {Case{1240, 1754, 3, 4, 13}, Case{1920, 1080, 4, 3, 13}, Case{2000, 90, 4, 1, 5},
                  Case{2600, 1900, 4, 3, 13}, Case{333, 77, 1, 1, 1}, Case{40, 500, 1, 1, 1},
                  Case{640, 480, 2, 1, 3}, Case{512, 512, 1, 1, 1}, Case{513, 512, 2, 1, 3},
                  Case{9000, 9000, 3, 3, 10}});
}

TEST(CohereVisionProcessor, AyaVisionTakesTheNearestRatio) {
  expect_tilings(processor_of(Format::kAya, 364),
                 {Case{1240, 1754, 2, 3, 7}, Case{1920, 1080, 4, 2, 9}, Case{2000, 90, 12, 1, 13},
                  Case{2600, 1900, 4, 3, 13}, Case{333, 77, 4, 1, 5}, Case{40, 500, 1, 12, 13},
                  Case{640, 480, 4, 3, 13}});
}

TEST(CohereVisionProcessor, ReadsTheNumbersOfTiles) {
  constexpr const char* kFile = R"({"min_patches": 2, "max_patches": 4})";
  expect_tilings(processor_of(Format::kCohere2, 512, kFile),
                 {Case{300, 300, 1, 1, 1}, Case{2600, 1900, 2, 2, 5}});
  expect_tilings(processor_of(Format::kAya, 364, kFile), {Case{300, 300, 2, 2, 5}});
  test::expect_error(
      ErrorCode::kCorruptData, "expected min_patches <= max_patches, got 4 and 2",
      [] { (void)processor_of(Format::kAya, 364, R"({"min_patches": 4, "max_patches": 2})"); });
}

TEST(CohereVisionProcessor, TilesCanBeSwitchedOffForCohere2) {
  constexpr const char* kFile = R"({"crop_to_patches": false})";
  expect_tilings(processor_of(Format::kCohere2, 512, kFile), {Case{2600, 1900, 1, 1, 1}});
  expect_tilings(processor_of(Format::kAya, 364, kFile), {Case{2600, 1900, 4, 3, 13}});
}

}  // namespace
}  // namespace fovea::cohere_vision
