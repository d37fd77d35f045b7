// config.json of Nemotron Omni in both of its formats: what is read, what is refused.
#include "models/nemotron_h_omni/config.h"

#include <gtest/gtest.h>

#include "models/config_files.h"
#include "support/expect_error.h"

namespace fovea::nemotron_h_omni {
namespace {

/// @param root further keys of config.json, each followed by a comma.
Config parse(const std::string& vision, const std::string& root = "",
             const std::string& text = R"("text_config": {"hidden_size": 64})") {
  return parse_config(test::config_files(
      {.config = "{" + root + "\"vision_config\": " + vision + ", " + text + "}"}));
}

/// vision_config as checkpoints have it. @param args further keys of it, each after a comma.
std::string published(const std::string& args = "", const std::string& vision = "") {
  return R"({"args": {"model": "vit_huge_patch16_224")" + args + "}, \"patch_size\": 16" + vision +
         "}";
}

TEST(NemotronHOmniConfig, DefaultsAreThoseOfTheReference) {
  const Config c = parse("{}");
  EXPECT_EQ(c.hidden_size, 1280);
  EXPECT_EQ(c.num_hidden_layers, 32);
  EXPECT_EQ(c.num_attention_heads, 16);
  EXPECT_EQ(c.intermediate_size, 5120);
  EXPECT_EQ(c.position_side(), 128);
  EXPECT_EQ(c.class_rows(), 10);
  EXPECT_EQ(c.layer_norm_eps, 1e-6);
  EXPECT_EQ(c.hidden_act, ops::Activation::kGeluErf);
  EXPECT_TRUE(c.qkv_bias);
  EXPECT_FALSE(c.vision_final_layernorm);
  EXPECT_EQ(c.projector_hidden_size, 4096);
  EXPECT_EQ(c.text_hidden_size, 64);
  EXPECT_EQ(c.joined_width(), 5120);
}

TEST(NemotronHOmniConfig, ReadsSizesOfOtherTowers) {
  const Config c = parse(R"({"hidden_size": 160, "num_attention_heads": 2, "mlp_ratio": 1.5,
                             "max_img_size": 256, "num_cls_tokens": 1, "num_registers": 0,
                             "qkv_bias": false, "hidden_act": "gelu_pytorch_tanh"})",
                         R"("vision_hidden_size": 160, "projector_hidden_size": 96, )",
                         R"("text_config": {"hidden_size": 32, "num_nextn_predict_layers": 2})");
  EXPECT_EQ(c.intermediate_size, 240);
  EXPECT_EQ(c.position_side(), 16);
  EXPECT_EQ(c.class_rows(), 1);
  EXPECT_FALSE(c.qkv_bias);
  EXPECT_EQ(c.hidden_act, ops::Activation::kGeluTanh);
  EXPECT_EQ(c.projector_hidden_size, 96);
  EXPECT_EQ(c.text_hidden_size, 32);
  EXPECT_TRUE(c.vision_final_layernorm);
}

TEST(NemotronHOmniConfig, ReadsTheArgumentsThatCheckpointsHave) {
  const Config c = parse(published(R"(, "cpe_max_size": 1024, "register_multiple": 10,
                                       "cls_token_per_teacher": true,
                                       "teachers": [{"name": "a"}, {"name": "b"}, {"name": "a"}])"),
                         R"("vit_hidden_size": 1280, "ps_version": "v2", )",
                         R"("llm_config": {"hidden_size": 2688})");
  EXPECT_EQ(c.hidden_size, 1280);
  EXPECT_EQ(c.intermediate_size, 5120);
  EXPECT_EQ(c.position_side(), 64);
  EXPECT_EQ(c.num_cls_tokens, 2) << "two names";
  EXPECT_EQ(c.num_registers, 8);
  EXPECT_EQ(c.text_hidden_size, 2688);
  EXPECT_EQ(parse(published()).class_rows(), 1);
}

TEST(NemotronHOmniConfig, RefusesWhatTheTowerDoesNotHave) {
  const auto expect_refused = [](ErrorCode code, const std::string& message,
                                 const std::string& vision, const std::string& root = "") {
    test::expect_error(code, message, [&] { (void)parse(vision, root); });
  };
  constexpr auto kUnsupported = ErrorCode::kUnsupported;
  constexpr auto kCorrupt = ErrorCode::kCorruptData;
  expect_refused(kUnsupported, "use_swiglu_ffn: only false", R"({"use_swiglu_ffn": true})");
  expect_refused(kUnsupported, "layerscale_value: only 1 is", R"({"layerscale_value": 0.5})");
  expect_refused(kUnsupported, "num_channels: only 3", R"({"num_channels": 4})");
  expect_refused(kUnsupported, "video_temporal_patch_size: only 2",
                 R"({"video_temporal_patch_size": 4})");
  expect_refused(kUnsupported, "downsample_ratio: only 0.5", "{}", R"("downsample_ratio": 0.25, )");
  expect_refused(kUnsupported, "ps_version: only v2", "{}", R"("ps_version": "v1", )");
  expect_refused(kCorrupt, "vision_hidden_size: 64 contradicts vision_config, which says 1280",
                 "{}", R"("vision_hidden_size": 64, )");
  expect_refused(kCorrupt, "mlp_ratio: 1e+09 times 1280 is not in", R"({"mlp_ratio": 1e9})");
  expect_refused(kCorrupt, "num_registers: expected a number in [0, 1024], got -1",
                 R"({"num_registers": -1})");
  expect_refused(kCorrupt, "a table of 8 pixels a side has no patch of 16",
                 R"({"max_img_size": 8})");
  expect_refused(kUnsupported, "model: expected vit_small_patch16_224",
                 R"({"args": {"model": "eradio"}})");
  expect_refused(kUnsupported, "vitdet_window_size: only null is supported, got 14",
                 published("", R"(, "vitdet_window_size": 14)"));
  expect_refused(kUnsupported, "separate_video_embedder: only true",
                 published("", R"(, "separate_video_embedder": false)"));
  expect_refused(kUnsupported, "cpe_num_registers: only 0",
                 published(R"(, "cpe_num_registers": 6)"));
  expect_refused(kCorrupt, "register_multiple: expected a number in [0, 1024], got -3",
                 published(R"(, "register_multiple": -3)"));
  test::expect_error(kCorrupt, "expected text_config or llm_config",
                     [] { (void)parse("{}", "", R"("other": 1)"); });
}

}  // namespace
}  // namespace fovea::nemotron_h_omni
