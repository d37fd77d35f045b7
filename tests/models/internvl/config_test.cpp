// config.json of both formats of InternVL: published towers, what is read, what is refused.
#include "models/internvl/config.h"

#include <gtest/gtest.h>

#include "models/config_files.h"
#include "models/load_model.h"
#include "support/expect_error.h"

namespace fovea::internvl {
namespace {

constexpr const char* k300M = R"("vision_config": {"hidden_size": 1024, "num_hidden_layers": 24,
    "num_attention_heads": 16, "intermediate_size": 4096, "image_size": 448, "patch_size": 14,
    "qkv_bias": true, "qk_normalization": false, "norm_type": "layer_norm", "hidden_act": "gelu",
    "layer_norm_eps": 1e-06, "num_channels": 3, "model_type": "intern_vit_6b"})";
constexpr const char* k6B = R"("vision_config": {"hidden_size": 3200, "num_hidden_layers": 45,
    "num_attention_heads": 25, "intermediate_size": 12800, "image_size": 448, "patch_size": 14,
    "qkv_bias": false, "qk_normalization": true, "norm_type": "rms_norm", "hidden_act": "gelu",
    "layer_norm_eps": 1e-06, "num_channels": 3, "model_type": "intern_vit_6b"})";

/// config.json of a published checkpoint in the authors' format, followed by `more`.
std::string chat(const std::string& vision, std::int64_t llm_width, const std::string& more = "") {
  return R"({"architectures": ["InternVLChatModel"], "downsample_ratio": 0.5, "ps_version": "v2",
    "dynamic_image_size": true, "use_thumbnail": true, "min_dynamic_patch": 1,
    "max_dynamic_patch": 12, "force_image_size": 448, "select_layer": -1, "pad2square": false,
    "llm_config": {"hidden_size": )" +
         std::to_string(llm_width) + "}, " + vision + more + "}";
}

std::string native(const std::string& vision, const std::string& more = "") {
  return R"({"architectures": ["InternVLForConditionalGeneration"],
    "text_config": {"hidden_size": 896}, "vision_config": )" +
         vision + more + "}";
}

Config parse(Format format, const std::string& text) {
  return parse_config(test::config_files({.config = text}), format);
}

TEST(InternvlConfig, EveryPublishedCheckpointPlans) {
  struct Case {
    const char* tower;
    std::int64_t llm_width;
  };
  for (const Case& c : {Case{k300M, 896}, Case{k300M, 1024}, Case{k300M, 1536}, Case{k300M, 2048},
                        Case{k300M, 2560}, Case{k300M, 2880}, Case{k300M, 3072}, Case{k300M, 3584},
                        Case{k300M, 4096}, Case{k300M, 5120}, Case{k6B, 4096}, Case{k6B, 5120},
                        Case{k6B, 6144}, Case{k6B, 7168}, Case{k6B, 8192}}) {
    const auto model = plan_model(test::config_files({.config = chat(c.tower, c.llm_width)}), {});
    EXPECT_EQ(model->graph_spec().out_width, c.llm_width);
    EXPECT_EQ(model->graph_spec().paths[0].unit, 256);
    EXPECT_EQ(model->processor().plan_image(1920, 1080).spec.out_rows, 2304);
  }
}

TEST(InternvlConfig, BothFormatsNameTheSameTower) {
  const Config a = parse(Format::kChat, chat(k300M, 896));
  const Config b =
      parse(Format::kNative, native(R"({"attention_bias": true, "image_size": [448, 448],
                                        "patch_size": [14, 14]})"));
  for (const Config& c : {a, b}) {
    EXPECT_EQ(c.num_hidden_layers, 24);
    EXPECT_EQ(c.joined_width(), 4096);
    EXPECT_EQ(c.view.patches(), 1024);
    EXPECT_EQ(c.view.tokens(), 256);
    EXPECT_TRUE(c.qkv_bias);
    EXPECT_FALSE(c.qk_normalization);
    EXPECT_FALSE(c.rms_norm);
    EXPECT_EQ(c.llm_hidden_size, 896);
  }
}

TEST(InternvlConfig, The6BTowerHasRmsNormsOfRowsAndOfQAndK) {
  for (const Config& c :
       {parse(Format::kChat, chat(k6B, 6144)),
        parse(Format::kNative, native(R"({"hidden_size": 3200, "num_attention_heads": 25,
            "use_qk_norm": true, "norm_type": "rms_norm"})"))}) {
    EXPECT_EQ(c.hidden_size, 3200);
    EXPECT_TRUE(c.rms_norm);
    EXPECT_TRUE(c.qk_normalization);
    EXPECT_FALSE(c.qkv_bias);
  }
}

TEST(InternvlConfig, SelectLayerCountsFromTheLastLayer) {
  EXPECT_EQ(
      parse(Format::kNative, native("{}", R"(, "vision_feature_layer": -2)")).num_hidden_layers,
      23);
  EXPECT_EQ(parse(Format::kChat, chat(k6B, 6144, R"(, "select_layer": -4)")).num_hidden_layers, 42);
}

TEST(InternvlConfig, RefusesWhatTheTowerDoesNotHave) {
  const auto expect_refused = [](const std::string& message, const std::string& vision,
                                 const std::string& more = "") {
    test::expect_error(ErrorCode::kUnsupported, message,
                       [&] { (void)parse(Format::kNative, native(vision, more)); });
  };
  expect_refused("norm_type: expected layer_norm or rms_norm", R"({"norm_type": "batch_norm"})");
  expect_refused("use_mean_pooling: only true is supported", R"({"use_mean_pooling": false})");
  expect_refused("use_absolute_position_embeddings: only true",
                 R"({"use_absolute_position_embeddings": false})");
  expect_refused("image_size: 420 is not a multiple of 56",
                 R"({"image_size": 420, "patch_size": 28})");
  expect_refused("num_channels: only 3 is supported, got 1", R"({"num_channels": 1})");
  expect_refused("hidden_act", R"({"hidden_act": "tanh"})");
  expect_refused("downsample_ratio: only 0.5", "{}", R"(, "downsample_ratio": 0.25)");
  expect_refused("vision_feature_layer: expected a number in [-24, -1], got 3", "{}",
                 R"(, "vision_feature_layer": 3)");
  expect_refused("vision_feature_select_strategy: only default", "{}",
                 R"(, "vision_feature_select_strategy": "full")");
  test::expect_error(ErrorCode::kUnsupported, "ps_version: only v2 is supported, got v1", [] {
    (void)parse(Format::kChat,
                R"({"vision_config": {"image_size": 448}, "llm_config": {"hidden_size": 8}})");
  });
  test::expect_error(
      ErrorCode::kUnsupported, "force_image_size: only 448 is supported, got 224",
      [] { (void)parse(Format::kChat, chat(k300M, 896, R"(, "force_image_size": 224)")); });
}

}  // namespace
}  // namespace fovea::internvl
