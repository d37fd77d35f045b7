// Gemma 3 behind the graph protocol: budgets, and crops as views.
#include "models/gemma3/model.h"

#include <gtest/gtest.h>

#include <random>

#include "graph/graph_config.h"
#include "models/config_files.h"
#include "models/golden_model.h"

namespace fovea::gemma3 {
namespace {

TEST(Gemma3Model, BudgetsHoldWholeViews) {
  const auto published = plan_model(test::config_files({.config = R"({
      "architectures": ["Gemma3ForConditionalGeneration"], "text_config": {"hidden_size": 2560},
      "vision_config": {"hidden_size": 1152, "num_attention_heads": 16, "image_size": 896,
                        "patch_size": 14}})"}),
                                    {});
  const GraphSpec& spec = published->graph_spec();
  EXPECT_EQ(spec.modalities, std::vector{Modality::kImage});
  EXPECT_EQ(spec.out_width, 2560);
  ASSERT_EQ(spec.paths.size(), 1U);
  EXPECT_EQ(spec.paths[0].unit, 256);
  const GraphConfig config = graph_config_of(*published, 8192, {.user = {}});
  EXPECT_EQ(config.path_budgets[0], (std::vector<std::int64_t>{256, 512, 1024, 2048, 4096, 8192}));
}

TEST(Gemma3Model, ACropGivesTheRowsOfAnImageWithItsPixels) {
  const auto folders = test::golden_folders("gemma3_pan_and_scan", "model.safetensors");
  if (folders.empty()) {
    GTEST_SKIP() << "gemma3_pan_and_scan is not in the repository: see FOVEA_GOLDEN_DIR";
  }
  const test::GoldenModel m(folders.front());
  const ItemProcessor& processor = m.model->processor();
  std::mt19937 random(1);
  const PreparedItem cropped = test::random_item(processor.plan_image(400, 200), random);
  ASSERT_EQ(cropped.plan.spec.units[0].count, 3);
  PreparedItem image{.plan = processor.plan_image(100, 100), .pixels = {}};
  image.pixels.assign(cropped.pixels.end() - static_cast<std::ptrdiff_t>(image.plan.pixel_bytes),
                      cropped.pixels.end());
  const PreparedItem* const items[] = {&cropped, &image};
  const test::RowBytes rows = m.run_alone(items);
  EXPECT_EQ(rows[1], std::vector(rows[0].begin() + std::ssize(rows[0]) / 3 * 2, rows[0].end()));
}

}  // namespace
}  // namespace fovea::gemma3
