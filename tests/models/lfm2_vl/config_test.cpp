// config.json of LFM2-VL: defaults of the reference, what is read, what is refused.
#include "models/lfm2_vl/config.h"

#include <gtest/gtest.h>

#include "models/config_files.h"
#include "support/expect_error.h"
#include "support/golden.h"

namespace fovea::lfm2_vl {
namespace {

/// @param root further keys of config.json, each followed by a comma.
Config parse(const std::string& vision, const std::string& root = "",
             const std::string& text = R"({"hidden_size": 2048})") {
  return parse_config(test::config_files({.config = "{" + root + "\"vision_config\": " + vision +
                                                    ", \"text_config\": " + text + "}"}));
}

TEST(Lfm2VlConfig, DefaultsAreThoseOfTheReference) {
  const Config c = parse("{}");
  EXPECT_EQ(c.num_hidden_layers, 12);
  EXPECT_EQ(c.hidden_size, 768);
  EXPECT_EQ(c.intermediate_size, 3072);
  EXPECT_EQ(c.num_attention_heads, 12);
  EXPECT_EQ(c.position_side(), 16);
  EXPECT_EQ(c.layer_norm_eps, 1e-6);
  EXPECT_EQ(c.hidden_act, ops::Activation::kGeluTanh);
  EXPECT_EQ(c.projector_hidden_act, ops::Activation::kGeluErf);
  EXPECT_EQ(c.projector_hidden_size, 2560);
  EXPECT_TRUE(c.projector_bias);
  EXPECT_TRUE(c.projector_use_layernorm);
  EXPECT_EQ(c.text_hidden_size, 2048);
  EXPECT_EQ(c.grid.patch_dim(), 768);
  EXPECT_EQ(c.grid.resize_factor(), 32);
  EXPECT_EQ(c.joined_width(), 3072);
}

TEST(Lfm2VlConfig, ReadsSizesOfOtherTowers) {
  const Config c = parse(R"({"hidden_size": 128, "num_attention_heads": 2, "num_patches": 100,
                             "patch_size": 14, "layer_norm_eps": 1e-5, "hidden_act": "gelu"})",
                         R"("downsample_factor": 3, "projector_hidden_size": 96,
                            "projector_bias": false, "projector_use_layernorm": false,
                            "projector_hidden_act": "silu", )",
                         R"({"hidden_size": 64})");
  EXPECT_EQ(c.position_side(), 10);
  EXPECT_EQ(c.layer_norm_eps, 1e-5);
  EXPECT_EQ(c.hidden_act, ops::Activation::kGeluErf);
  EXPECT_EQ(c.projector_hidden_act, ops::Activation::kSilu);
  EXPECT_EQ(c.projector_hidden_size, 96);
  EXPECT_FALSE(c.projector_bias);
  EXPECT_FALSE(c.projector_use_layernorm);
  EXPECT_EQ(c.text_hidden_size, 64);
  EXPECT_EQ(c.grid.resize_factor(), 42);
}

TEST(Lfm2VlConfig, RefusesWhatTheTowerDoesNotHave) {
  const auto expect_refused = [](ErrorCode code, const std::string& message,
                                 const std::string& vision, const std::string& root = "") {
    test::expect_error(code, message, [&] { (void)parse(vision, root); });
  };
  expect_refused(ErrorCode::kUnsupported, "num_patches: 200 is no square",
                 R"({"num_patches": 200})");
  expect_refused(ErrorCode::kUnsupported, "num_channels: only 3 is supported, got 1",
                 R"({"num_channels": 1})");
  expect_refused(ErrorCode::kUnsupported, "vision_feature_layer: only -1 is supported, got -2",
                 "{}", R"("vision_feature_layer": -2, )");
  expect_refused(ErrorCode::kUnsupported, "projector_hidden_act: expected gelu_pytorch_tanh", "{}",
                 R"("projector_hidden_act": "relu", )");
  test::expect_error(ErrorCode::kCorruptData, "hidden_size", [] { (void)parse("{}", "", "{}"); });
}

TEST(Lfm2VlConfig, ReadsTheGoldenCheckpoint) {
  const auto folders = test::golden_folders("lfm2_vl", "config.json");
  if (folders.empty()) GTEST_SKIP() << "no folder lfm2_vl; set FOVEA_GOLDEN_DIR";
  for (const std::string& folder : folders) {
    const checkpoint::HfConfig files = checkpoint::read_hf_config(folder);
    EXPECT_EQ(parse_config(files).grid.spatial_merge_size,
              files.config.root().at("downsample_factor").as_int());
  }
}

}  // namespace
}  // namespace fovea::lfm2_vl
