// config.json of CLIP.
#include "models/clip/config.h"

#include <gtest/gtest.h>

#include "models/config_files.h"
#include "support/expect_error.h"

namespace fovea::clip {
namespace {

Config parse(const std::string& text) { return parse_config(test::config_files({.config = text})); }

TEST(ClipConfig, ReadsThePublishedModel) {
  const Config c =
      parse(R"({"architectures": ["CLIPModel"], "projection_dim": 768, "text_config": {},
      "vision_config": {"hidden_size": 1024, "intermediate_size": 4096, "num_attention_heads": 16,
      "num_hidden_layers": 24, "image_size": 336, "patch_size": 14, "projection_dim": 512,
      "hidden_act": "quick_gelu", "model_type": "clip_vision_model"}})");
  EXPECT_EQ(c.tower.view.patches(), 576);
  EXPECT_EQ(c.tower.hidden_act, ops::Activation::kQuickGelu);
  EXPECT_EQ(c.projection_dim, 768) << "that of the root counts in the reference";
  EXPECT_EQ(c.vector_width(), 768);
  EXPECT_EQ(c.tower_name, "vision_model.");
}

TEST(ClipConfig, ASilentFileHasTheDefaultsOfTheReferencesClass) {
  const Config c = parse(R"({"architectures": ["CLIPModel"], "vision_config": {}})");
  EXPECT_EQ(c.tower.hidden_size, 768);
  EXPECT_EQ(c.tower.view.patches(), 49);
  EXPECT_EQ(c.tower.layer_norm_eps, 1e-5);
  EXPECT_EQ(c.projection_dim, 512);
}

TEST(ClipConfig, TheVisionPartAloneIsTheRoot) {
  const Config projected = parse(R"({"architectures": ["CLIPVisionModelWithProjection"],
      "model_type": "clip_vision_model", "hidden_size": 1280, "num_attention_heads": 16,
      "projection_dim": 1024, "patch_size": 14, "hidden_act": "gelu"})");
  EXPECT_EQ(projected.tower.hidden_size, 1280);
  EXPECT_EQ(projected.tower.hidden_act, ops::Activation::kGeluErf);
  EXPECT_EQ(projected.vector_width(), 1024);
  const Config alone = parse(R"({"architectures": ["CLIPVisionModel"], "projection_dim": 1024})");
  EXPECT_EQ(alone.vector_width(), 768) << "it has no projection";
  EXPECT_EQ(alone.tower_name, "");
}

TEST(ClipConfig, RefusesAnotherTower) {
  test::expect_error(ErrorCode::kUnsupported, "model_type: only clip_vision_model is supported",
                     [] {
                       (void)parse(R"({"architectures": ["CLIPModel"],
                    "vision_config": {"model_type": "siglip_vision_model"}})");
                     });
  test::expect_error(ErrorCode::kUnsupported, "hidden_act: expected gelu_pytorch_tanh", [] {
    (void)parse(R"({"architectures": ["CLIPModel"], "vision_config": {"hidden_act": "tanh"}})");
  });
}

}  // namespace
}  // namespace fovea::clip
