// CLIP over square views: what is read of a configuration, its tensors, its sequences.
#include "models/common/views/clip.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace fovea::common {
namespace {

ClipConfig parse_clip(const std::string& vision) {
  const JsonDocument document = JsonDocument::parse(vision, "vision");
  return read_clip(document.root());
}

TEST(ClipConfig, HasTheDefaultsOfTheReferencesClass) {
  const ClipConfig c = parse_clip("{}");
  EXPECT_EQ(c.hidden_size, 768);
  EXPECT_EQ(c.num_hidden_layers, 12);
  EXPECT_EQ(c.num_attention_heads, 12);
  EXPECT_EQ(c.intermediate_size, 3072);
  EXPECT_EQ(c.view.patches(), 49);
  EXPECT_EQ(c.layer_norm_eps, 1e-5);
  EXPECT_EQ(c.hidden_act, ops::Activation::kQuickGelu);
}

TEST(ClipConfig, PixelsBeyondTheLastPatchDoNotCount) {
  EXPECT_EQ(parse_clip(R"({"image_size": 225})").view.patches(), 49);
  test::expect_error(ErrorCode::kCorruptData, "image_size: 224 pixels hold no patch of 225",
                     [] { (void)parse_clip(R"({"patch_size": 225})"); });
}

TEST(ClipConfig, RefusesOtherTowers) {
  test::expect_error(ErrorCode::kUnsupported,
                     "model_type: only clip_vision_model is supported, got siglip_vision_model",
                     [] { (void)parse_clip(R"({"model_type": "siglip_vision_model"})"); });
}

TEST(ClipTower, HasAClassRowAndANormBeforeItsBlocks) {
  const auto source = checkpoint::WeightSource::dummy(0);
  WeightLoader checker(source, "");
  const ClipConfig c = parse_clip("{}");
  const ClipTower tower = load_clip(checker, "t.", c, {});
  EXPECT_EQ(checker.report().size(), 5U + 12 * 16);
  EXPECT_FALSE(tower.patch_embedding.proj.has_bias);
  EXPECT_EQ(tower.position_embedding.shape, (Shape{50, 768}));
  EXPECT_EQ(tower.pre_layrnorm.epsilon, 1e-5f);
  const ViewLayout layout = clip_layout(c);
  EXPECT_EQ(layout.sequence.rows(), 50);
  EXPECT_EQ(layout.sequence.first_patch, 1);
  EXPECT_EQ(layout.tokens, 49);
}

}  // namespace
}  // namespace fovea::common
