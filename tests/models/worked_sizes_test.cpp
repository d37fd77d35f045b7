// From sizes to rows and budgets with the configurations of published checkpoints: worked examples
// of the references that no test of a family has.
#include <gtest/gtest.h>

#include "graph/graph_config.h"
#include "models/common/grid/inputs.h"
#include "models/common/grid/same_size.h"
#include "models/deepseek_ocr/processor.h"
#include "models/load_model.h"
#include "support/sha256.h"

namespace fovea {
namespace {

using Grid = std::array<std::int64_t, 3>;
using List = std::vector<std::int64_t>;

/// The planner of a published checkpoint.
std::unique_ptr<EncoderGraphModel> published(const std::string& name) {
  return plan_model(checkpoint::read_hf_config(FOVEA_TEST_SOURCE_DIR "/tests/configs/" + name), {});
}

struct SizeCase {
  const char* model;
  std::int64_t frames;  ///< 0: an image
  std::int64_t width, height;
  Grid grid;  ///< of InternVL's frames: (frames, 1, 1)
  std::int64_t rows;
};

class WorkedSizes : public ::testing::TestWithParam<SizeCase> {};

TEST_P(WorkedSizes, GiveTheGridAndTheRowsOfTheReference) {
  const SizeCase& c = GetParam();
  const auto model = published(c.model);
  const ItemProcessor& processor = model->processor();
  const ItemPlan plan = c.frames == 0 ? processor.plan_image(c.width, c.height)
                                      : processor.plan_video(c.frames, c.width, c.height);
  EXPECT_EQ(plan.grid, c.grid);
  EXPECT_EQ(plan.spec.out_rows, c.rows);
}

INSTANTIATE_TEST_SUITE_P(
    Videos, WorkedSizes,
    ::testing::Values(SizeCase{"Qwen2-VL-7B-Instruct", 16, 1280, 720, {8, 52, 92}, 9568},
                      SizeCase{"Qwen2-VL-7B-Instruct", 16, 640, 360, {8, 26, 46}, 2392},
                      SizeCase{"Qwen2.5-VL-7B-Instruct", 16, 1280, 720, {8, 52, 92}, 9568},
                      SizeCase{"Qwen2.5-VL-7B-Instruct", 16, 640, 360, {8, 26, 46}, 2392},
                      SizeCase{"Qwen3-VL-8B-Instruct", 32, 1280, 720, {16, 40, 72}, 11520},
                      SizeCase{"Qwen3-VL-8B-Instruct", 46, 1280, 720, {23, 34, 60}, 11730},
                      SizeCase{"Qwen3.5-9B", 16, 1280, 720, {8, 44, 80}, 7040},
                      SizeCase{"Qwen3.5-9B", 768, 1920, 1080, {384, 8, 14}, 10752},
                      SizeCase{"GLM-4.1V-9B-Thinking", 16, 1280, 720, {8, 52, 92}, 9568},
                      SizeCase{"GLM-4.1V-9B-Thinking", 64, 1920, 1080, {32, 44, 80}, 28160},
                      SizeCase{"GLM-4.1V-9B-Thinking", 600, 1920, 1080, {300, 14, 26}, 27300},
                      SizeCase{"InternVL3-8B", 32, 1280, 720, {32, 1, 1}, 8192}));

/// Windows beside the whole image: 81 rows each and 169.
INSTANTIATE_TEST_SUITE_P(Step3Vl, WorkedSizes,
                         ::testing::Values(SizeCase{"step3", 0, 700, 500, {1, 0, 0}, 169},
                                           SizeCase{"step3", 0, 727, 727, {1, 0, 0}, 169},
                                           SizeCase{"step3", 0, 729, 729, {1, 2, 2}, 493},
                                           SizeCase{"step3", 0, 1024, 768, {1, 2, 2}, 493},
                                           SizeCase{"step3", 0, 800, 600, {1, 1, 2}, 331},
                                           SizeCase{"step3", 0, 604, 1000, {1, 2, 1}, 331},
                                           SizeCase{"step3", 0, 605, 1000, {1, 2, 2}, 493},
                                           SizeCase{"step3", 0, 1080, 1920, {1, 4, 2}, 817},
                                           SizeCase{"step3", 0, 2500, 500, {1, 1, 5}, 574},
                                           SizeCase{"step3", 0, 300, 3000, {1, 10, 1}, 979},
                                           SizeCase{"step3", 0, 10, 200, {1, 0, 0}, 169}));

struct UnitCase {
  const char* model;
  std::int64_t frames;  ///< 0: an image
  std::int64_t width, height;
  std::vector<ItemUnits> units;
  std::int64_t more_rows = 0;  ///< that stand between units
};

class WorkedUnits : public ::testing::TestWithParam<UnitCase> {};

TEST_P(WorkedUnits, AreTemporalPatchesTilesAndCrops) {
  const UnitCase& c = GetParam();
  const auto model = published(c.model);
  const ItemProcessor& processor = model->processor();
  const ItemPlan plan = c.frames == 0 ? processor.plan_image(c.width, c.height)
                                      : processor.plan_video(c.frames, c.width, c.height);
  EXPECT_EQ(units_of(plan.spec), c.units);
  std::int64_t patches = 0;
  std::int64_t rows = c.more_rows;
  for (const ItemUnits& units : units_of(plan.spec)) {
    patches += units.count * units.patches;
    rows += units.count * units.rows;
  }
  EXPECT_EQ(patches, plan.spec.input_rows);
  EXPECT_EQ(rows, plan.spec.out_rows);
}

INSTANTIATE_TEST_SUITE_P(
    Families, WorkedUnits,
    ::testing::Values(
        UnitCase{"Qwen2.5-VL-7B-Instruct", 16, 1280, 720, {{8, 52 * 92, 26 * 46}}},
        UnitCase{"Qwen2.5-VL-7B-Instruct", 0, 1280, 720, {{1, 52 * 92, 26 * 46}}},
        UnitCase{"Qwen3-VL-8B-Instruct", 46, 1280, 720, {{23, 34 * 60, 17 * 30}}},
        UnitCase{"GLM-4.1V-9B-Thinking", 600, 1920, 1080, {{300, 14 * 26, 7 * 13}}},
        UnitCase{"InternVL3-8B", 32, 1280, 720, {{32, 1024, 256}}},
        UnitCase{"InternVL3-8B", 0, 800, 400, {{3, 1024, 256}}},  // two tiles and a thumbnail
        UnitCase{"step3", 0, 800, 600, {{1, 52 * 52, 169}, {2, 36 * 36, 81}}},
        // The whole image with a newline behind each of its 16 rows, two tiles with newlines behind
        // their 10 rows together, and a separator.
        UnitCase{"DeepSeek-OCR", 0, 1280, 640, {{1, 4096, 272}, {2, 1600, 100}}, 10 + 1},
        UnitCase{"DeepSeek-OCR", 0, 640, 480, {{1, 4096, 272}}, 1}));

struct BudgetCase {
  const char* model;
  std::vector<List> budgets;  ///< of each path
  std::int64_t items;         ///< at most the smallest budget
};

class WorkedBudgets : public ::testing::TestWithParam<BudgetCase> {};

TEST_P(WorkedBudgets, DoubleFromTheMinimumUpToTheStepOfTheConsumer) {
  const GraphConfig config = graph_config_of(*published(GetParam().model), 8192, {.user = {}});
  EXPECT_EQ(config.path_budgets, GetParam().budgets);
  EXPECT_EQ(config.max_items, GetParam().items);
}

INSTANTIATE_TEST_SUITE_P(
    Families, WorkedBudgets,
    ::testing::Values(
        BudgetCase{"Qwen2-VL-7B-Instruct", {{64, 128, 256, 512, 1024, 2048, 4096, 8192}}, 64},
        BudgetCase{"Qwen2.5-VL-7B-Instruct", {{64, 128, 256, 512, 1024, 2048, 4096, 8192}}, 64},
        BudgetCase{"Qwen3-VL-8B-Instruct", {{64, 128, 256, 512, 1024, 2048, 4096, 8192}}, 64},
        BudgetCase{"Qwen3.5-9B", {{64, 128, 256, 512, 1024, 2048, 4096, 8192}}, 64},
        BudgetCase{"GLM-4.1V-9B-Thinking", {{64, 128, 256, 512, 1024, 2048, 4096, 8192}}, 64},
        BudgetCase{"InternVL3-8B", {{256, 512, 1024, 2048, 4096, 8192}}, 32},
        BudgetCase{"InternVL3-8B-hf", {{256, 512, 1024, 2048, 4096, 8192}}, 32},
        BudgetCase{"Kimi-VL-A3B-Instruct", {{64, 128, 256, 512, 1024, 2048, 4096, 8192}}, 64},
        BudgetCase{"Llama-4-Scout-17B-16E-Instruct", {{144, 288, 576, 1152, 2304, 4608, 8192}}, 56},
        BudgetCase{
            "DeepSeek-OCR",
            {{272, 544, 1088, 2176, 4352, 8192}, {0, 100, 200, 400, 800, 1600, 3200, 6400, 8192}},
            30},
        BudgetCase{"step3",
                   {{169, 338, 676, 1352, 2704, 5408, 8192},
                    {0, 81, 162, 324, 648, 1296, 2592, 5184, 8192}},
                   48}));

TEST(WorkedBudgets, EndWithAStepThatIsNoDoubling) {
  const GraphConfig config =
      graph_config_of(*published("Qwen3-VL-8B-Instruct"), 5000, {.user = {}});
  EXPECT_EQ(config.path_budgets[0], (List{64, 128, 256, 512, 1024, 2048, 4096, 5000}));
}

/// Patches of 4 x 4 pixels, 2 x 2 of them a token.
const common::GridProcessor& small_patches() {
  static const common::GridProcessor processor(test::same_size(4));
  return processor;
}

/// The patches of a grid by token, numbered from `first` on row by row.
List merge_order(std::int64_t rows, std::int64_t cols, std::int64_t first = 0) {
  const ItemPlan plan = small_patches().plan_image(4 * cols, 4 * rows);
  std::vector<std::int32_t> positions(static_cast<std::size_t>(4 * rows * cols));
  std::vector<std::int32_t> sources(positions.size());
  common::write_patch_rows(small_patches().processing().geometry, plan, 0, plan.pixel_bytes,
                           positions, sources);
  List order;
  for (std::size_t i = 0; i < positions.size(); i += 4) {
    order.push_back(first + positions[i] * cols + positions[i + 1]);
  }
  return order;
}

TEST(WorkedMergeOrder, IsThatOfTheReference) {
  EXPECT_EQ(merge_order(4, 4), (List{0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15}));
  EXPECT_EQ(merge_order(2, 6), (List{0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11}));
  EXPECT_EQ(merge_order(2, 4), (List{0, 1, 4, 5, 2, 3, 6, 7}));
  EXPECT_EQ(merge_order(4, 2, 8), (List{8, 9, 10, 11, 12, 13, 14, 15}));
}

TEST(WorkedPadding, ASmallerImageLiesInTheMiddleOfGrey) {
  constexpr std::int64_t kSide = 64;
  deepseek_ocr::Processing processing;
  processing.views[deepseek_ocr::kGlobal] = deepseek_ocr::view_of(kSide);
  const deepseek_ocr::Processor processor(processing);
  std::vector<std::uint8_t> rgb;
  for (int y = 0; y < 48; ++y) {
    for (int x = 0; x < 64; ++x) {
      for (int c = 0; c < 3; ++c) {
        rgb.push_back(static_cast<std::uint8_t>(7 * x + 13 * y + 29 * c + x * y));
      }
    }
  }
  const ItemPlan plan = processor.plan_image(64, 48);
  std::vector<std::uint8_t> view(plan.pixel_bytes);
  const RgbView image{rgb.data(), 64, 48};
  processor.fill_frame(plan, 0, image, view);
  ASSERT_EQ(view.size(), static_cast<std::size_t>(kSide * kSide * 3));
  EXPECT_EQ(test::sha256_hex(view).substr(0, 16), "eda0732286726416");
}

}  // namespace
}  // namespace fovea
