// config.json of Kimi-K2.5: both spellings, what is refused.
#include "models/kimi_k25/config.h"

#include <gtest/gtest.h>

#include "models/config_files.h"
#include "support/expect_error.h"

namespace fovea::kimi_k25 {
namespace {

Config parse(const std::string& vision, const std::string& root = {},
             const std::string& processor = {}) {
  return parse_config(test::config_files(
      {.config = "{\"vision_config\": " + vision + root + "}", .preprocessor = processor}));
}

TEST(KimiK25Config, HasTheKeysOfPublishedFilesOrThoseOfTransformers) {
  const std::string published = R"({"init_pos_emb_height": 64, "init_pos_emb_time": 4,
      "init_pos_emb_width": 64, "merge_kernel_size": [2, 2], "merge_type": "sd2_tpool",
      "mm_hidden_size": 1152, "mm_projector_type": "patchmerger", "patch_size": 14,
      "pos_emb_type": "divided_fixed", "projector_hidden_act": "gelu", "projector_ln_eps": 1e-05,
      "text_hidden_size": 7168, "video_attn_type": "spatial_temporal", "vt_hidden_size": 1152,
      "vt_intermediate_size": 4304, "vt_num_attention_heads": 16, "vt_num_hidden_layers": 27})";
  const std::string native = R"({"hidden_size": 1152, "intermediate_size": 4304,
      "num_attention_heads": 16, "num_hidden_layers": 27, "pos_emb_height": 64, "pos_emb_time": 4,
      "pos_emb_width": 64, "hidden_act": "gelu_pytorch_tanh",
      "rope_parameters": {"rope_theta": 10000.0, "rope_type": "axial"}})";
  for (const std::string& vision : {std::string("{}"), published, native}) {
    const Config c = parse(vision);
    EXPECT_EQ(c.num_hidden_layers, 27);
    EXPECT_EQ(c.head_dim(), 72);
    EXPECT_EQ(c.intermediate_size, 4304);
    EXPECT_EQ(c.init_pos_emb_height, 64);
    EXPECT_EQ(c.init_pos_emb_time, 4);
    EXPECT_EQ(c.text_hidden_size, 7168);
    EXPECT_EQ(c.grid.temporal_patch_size, 4);
    EXPECT_EQ(c.grid.patch_dim(), 588) << "every frame has patches of its own";
  }
  const Config small = parse(
      R"({"vt_hidden_size": 144, "vt_num_attention_heads": 2, "mm_hidden_size": 144,
          "init_pos_emb_time": 8})",
      R"(, "text_config": {"hidden_size": 64}, "projection_layer_norm_eps": 0.001)",
      R"({"media_proc_cfg": {"temporal_merge_kernel_size": 2}})");
  EXPECT_EQ(small.text_hidden_size, 64);
  EXPECT_EQ(small.projector_ln_eps, 0.001);
  EXPECT_EQ(small.init_pos_emb_time, 8);
  EXPECT_EQ(small.grid.temporal_patch_size, 2);
}

TEST(KimiK25Config, RefusesWhatTheTowerDoesNotHave) {
  const auto expect_refused = [](ErrorCode code, const std::string& message,
                                 const std::string& vision) {
    test::expect_error(code, message, [&] { (void)parse(vision); });
  };
  expect_refused(ErrorCode::kUnsupported, "vision_config.pos_emb_type",
                 R"({"pos_emb_type": "learned"})");
  expect_refused(ErrorCode::kUnsupported, "video_attn_type", R"({"video_attn_type": "spatial"})");
  expect_refused(ErrorCode::kUnsupported, "merge_type", R"({"merge_type": "sd2"})");
  expect_refused(ErrorCode::kUnsupported, "mm_projector_type", R"({"mm_projector_type": "mlp"})");
  expect_refused(ErrorCode::kUnsupported,
                 "mm_hidden_size: only 1152, the width of the tower, is supported, got 64",
                 R"({"mm_hidden_size": 64})");
  expect_refused(ErrorCode::kUnsupported, "rope_type: axial and default are supported, got yarn",
                 R"({"rope_parameters": {"rope_type": "yarn"}})");
  expect_refused(ErrorCode::kCorruptData, "init_pos_emb_time", R"({"init_pos_emb_time": 100000})");
  test::expect_error(ErrorCode::kUnsupported,
                     "temporal_patch_size: 8 frames make a chunk, config.json has positions for 4",
                     [] { (void)parse("{}", "", R"({"temporal_patch_size": 8})"); });
}

}  // namespace
}  // namespace fovea::kimi_k25
