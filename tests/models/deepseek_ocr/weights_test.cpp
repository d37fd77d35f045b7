// The list of tensors: all that the released checkpoint holds for the towers, and nothing else.
#include "models/deepseek_ocr/model.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/golden.h"

namespace fovea::deepseek_ocr {
namespace {

const Views kViews{view_of(1024), view_of(640)};

Weights load(common::WeightLoader& loader, const Config& config) {
  return load_weights(loader, config, kViews, {});
}

TEST(DeepseekOcrWeights, AreTheTensorsOfTheReleasedCheckpoint) {
  // 179 of SAM, 293 of CLIP, 4 others. CLIP's patch embedding is there and never used.
  const auto source = checkpoint::WeightSource::dummy(0);
  common::WeightLoader loader(source, "model.");
  (void)load(loader, Config{});
  const auto count = [&](std::string_view prefix) {
    return std::ranges::count_if(loader.report(), [&](const TensorReport& tensor) {
      return tensor.name.starts_with(prefix);
    });
  };
  EXPECT_EQ(count("model.sam_model."), 179);
  EXPECT_EQ(count("model.vision_model."), 293 - 1);
  EXPECT_EQ(loader.report().size(), 179u + 292 + 4);
  constexpr std::int64_t kPatchEmbedding = 1024 * 3 * 14 * 14;
  EXPECT_EQ(loader.parameters(), 95569152 + (303177728 - kPatchEmbedding) + 2625280);
}

TEST(DeepseekOcrWeights, PositionTablesHaveTheSizesOfTheViews) {
  const auto source = checkpoint::WeightSource::dummy(0);
  common::WeightLoader loader(source, "model.");
  const Weights w = load(loader, Config{});
  EXPECT_EQ(w.sam.pos_embed[0].shape, (Shape{64 * 64, 768}));
  EXPECT_EQ(w.sam.pos_embed[1].shape, (Shape{40 * 40, 768}));
  EXPECT_EQ(w.clip.position_embedding[0].shape, (Shape{257, 1024}));
  EXPECT_EQ(w.clip.position_embedding[1].shape, (Shape{101, 1024}));
  for (std::size_t layer = 0; layer < 12; ++layer) {
    const bool global = layer % 3 == 2;
    EXPECT_EQ(w.sam.blocks[layer].rel_pos_h[0].shape, (Shape{global ? 127 : 27, 64})) << layer;
    EXPECT_EQ(w.sam.blocks[layer].rel_pos_w[1].shape, (Shape{global ? 79 : 27, 64})) << layer;
  }
}

TEST(DeepseekOcrWeights, AGoldenCheckpointHoldsThemAll) {
  for (const std::string& folder : test::golden_folders("deepseek_ocr", "model.safetensors")) {
    const auto source = checkpoint::WeightSource::open(folder);
    common::WeightLoader loader(source, "model.");
    (void)load(loader, parse_config(checkpoint::read_hf_config(folder)));
    for (const TensorReport& tensor : loader.report()) EXPECT_EQ(tensor.problem, "") << tensor.name;
  }
}

TEST(DeepseekOcrWeights, EveryMissingTensorIsNamed) {
  const auto source =
      checkpoint::WeightSource::open(test::golden_folder("deepseek_ocr", "model.safetensors"));
  common::WeightLoader loader(source, "model.");
  (void)load(loader, Config{});  // the sizes of the released one
  const auto problem = [&](const std::string& name) {
    const auto entry = std::ranges::find(loader.report(), name, &TensorReport::name);
    return entry == loader.report().end() ? "not asked for" : entry->problem;
  };
  EXPECT_TRUE(problem("model.sam_model.blocks.3.attn.qkv.weight").starts_with("missing"));
  EXPECT_TRUE(problem("model.image_newline").starts_with("has shape [64]"));
}

}  // namespace
}  // namespace fovea::deepseek_ocr
