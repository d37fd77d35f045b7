// config.json of MiniMax-M3: defaults of the reference, what is read, what is refused.
#include "models/minimax_m3_vl/config.h"

#include <gtest/gtest.h>

#include "models/config_files.h"
#include "support/expect_error.h"

namespace fovea::minimax_m3_vl {
namespace {

/// @param root further keys of config.json, each followed by a comma.
Config parse(const std::string& vision, const std::string& root = "") {
  return parse_config(test::config_files({.config = "{" + root + "\"vision_config\": " + vision +
                                                    R"(, "text_config": {"hidden_size": 6144}})"}));
}

TEST(MiniMaxM3Config, DefaultsAreThoseOfTheReference) {
  const Config c = parse("{}");
  EXPECT_EQ(c.num_hidden_layers, 32);
  EXPECT_EQ(c.head_dim(), 80);
  EXPECT_EQ(c.axis_angles(), 13);
  EXPECT_EQ(c.layer_norm_eps, 1e-5);
  EXPECT_EQ(c.hidden_act, ops::Activation::kGeluErf);
  EXPECT_EQ(c.rope_theta, 10000);
  EXPECT_EQ(c.projector_hidden_size, 6144);
  EXPECT_EQ(c.joined_width(), 4 * 6144);
  EXPECT_EQ(c.grid.patch_dim(), 1176);
}

TEST(MiniMaxM3Config, ReadsSizesOfOtherTowers) {
  const Config c = parse(R"({"hidden_size": 128, "num_attention_heads": 2, "hidden_act": "silu",
                             "rope_parameters": {"rope_type": "default", "rope_theta": 500}})",
                         R"("projector_hidden_size": 96, )");
  EXPECT_EQ(c.axis_angles(), 10);
  EXPECT_EQ(c.vision_segment_max_frames, 4);
  EXPECT_EQ(c.hidden_act, ops::Activation::kSilu);
  EXPECT_EQ(c.rope_theta, 500);
  EXPECT_EQ(c.projector_hidden_size, 96);
}

TEST(MiniMaxM3Config, ReadsTheKeysOfReleasedFiles) {
  const Config c = parse(R"({"rope_mode": "3d", "position_embedding_type": "rope",
                             "rope_theta": 500.0, "vision_segment_max_frames": 8,
                             "img_token_compression_config": {
                               "image_token_compression_method": "patch_merge",
                               "spatial_merge_size": 4, "temporal_patch_size": 2}})",
                         R"("multimodal_projector_bias": true, "vision_feature_layer": -1,
                            "vision_feature_select_strategy": "full", )");
  EXPECT_EQ(c.rope_theta, 500);
  EXPECT_EQ(c.vision_segment_max_frames, 8);
  EXPECT_EQ(c.grid.spatial_merge_size, 4);
}

TEST(MiniMaxM3Config, RefusesWhatTheTowerDoesNotHave) {
  const auto expect_refused = [](const std::string& message, const std::string& vision,
                                 const std::string& root = "") {
    test::expect_error(ErrorCode::kUnsupported, message, [&] { (void)parse(vision, root); });
  };
  expect_refused("rope_type: axial and default are supported, got yarn",
                 R"({"rope_parameters": {"rope_type": "yarn"}})");
  expect_refused("rope_mode: only 3d is supported, got 2d", R"({"rope_mode": "2d"})");
  expect_refused("image_token_compression_method: only patch_merge",
                 R"({"img_token_compression_config": {"image_token_compression_method": "pool"}})");
  expect_refused("vision_feature_layer: only -1", "{}", R"("vision_feature_layer": -2, )");
  expect_refused("temporal_patch_size: only 2 is supported", R"({"temporal_patch_size": 1})");
  expect_refused("projector_hidden_act: only gelu is supported, got relu", "{}",
                 R"("projector_hidden_act": "relu", )");
}

}  // namespace
}  // namespace fovea::minimax_m3_vl
