// config.json of the architectures with a Pixtral tower: defaults, what is read, what is refused.
#include "models/mistral3/config.h"

#include <gtest/gtest.h>

#include "models/config_files.h"
#include "support/expect_error.h"
#include "support/golden.h"

namespace fovea::mistral3 {
namespace {

const std::string kMistral = "Mistral3ForConditionalGeneration";
const std::string kLlava = "LlavaForConditionalGeneration";
const std::string kLightOn = "LightOnOCRForConditionalGeneration";

/// @param root further keys of config.json, each followed by a comma.
Config parse(const std::string& architecture, const std::string& vision,
             const std::string& root = "", const std::string& text = R"({"hidden_size": 5120})") {
  return parse_config(test::config_files(
      {.config = "{\"architectures\": [\"" + architecture + "\"], " + root +
                 "\"vision_config\": " + vision + ", \"text_config\": " + text + "}"}));
}

/// vision_config of Mistral Small 3.1, Ministral 3 and LightOnOCR, which differ in nothing.
const std::string kPublished = R"({"attention_dropout": 0.0, "head_dim": 64, "hidden_act": "silu",
    "hidden_size": 1024, "image_size": 1540, "initializer_range": 0.02, "intermediate_size": 4096,
    "model_type": "pixtral", "num_attention_heads": 16, "num_channels": 3,
    "num_hidden_layers": 24, "patch_size": 14, "rope_theta": 10000.0})";

TEST(Mistral3Config, DefaultsAreThoseOfTheReference) {
  const Config c = parse(kMistral, "{}");
  EXPECT_EQ(c.format, Format::kMistral3);
  EXPECT_EQ(c.hidden_size, 1024);
  EXPECT_EQ(c.intermediate_size, 4096);
  EXPECT_EQ(c.num_hidden_layers, 24);
  EXPECT_EQ(c.head_dim(), 64);
  EXPECT_EQ(c.image_size, 1024);
  EXPECT_EQ(c.rope_theta, 10000.0);
  EXPECT_EQ(c.hidden_act, ops::Activation::kGeluErf);
  EXPECT_EQ(c.projector_hidden_act, ops::Activation::kGeluErf);
  EXPECT_FALSE(c.multimodal_projector_bias);
  EXPECT_EQ(c.text_rms_norm_eps, 1e-6);
  EXPECT_EQ(c.text_hidden_size, 5120);
  EXPECT_EQ(c.grid.patch_dim(), 3 * 16 * 16);
  EXPECT_EQ(c.grid.resize_factor(), 32);
}

TEST(Mistral3Config, ReadsPublishedTowers) {
  for (const std::string& architecture : {kMistral, kLightOn}) {
    const Config c = parse(architecture, kPublished, R"("spatial_merge_size": 2, )",
                           R"({"hidden_size": 3072, "rms_norm_eps": 1e-05})");
    EXPECT_EQ(c.format, architecture == kMistral ? Format::kMistral3 : Format::kLightOnOcr);
    EXPECT_EQ(c.hidden_act, ops::Activation::kSilu);
    EXPECT_EQ(c.image_size, 1540);
    EXPECT_EQ(c.grid.resize_factor(), 28);
    EXPECT_EQ(c.joined_width(), 4096);
    EXPECT_EQ(c.text_rms_norm_eps, 1e-5);
    EXPECT_EQ(c.text_hidden_size, 3072);
  }
}

TEST(Mistral3Config, PixtralJoinsNoPatchesAndHasBiases) {
  const std::string vision = R"({"model_type": "pixtral", "image_size": 1024, "patch_size": 16,
                                 "hidden_act": "silu"})";
  const std::string root =
      R"("vision_feature_layer": -1, "vision_feature_select_strategy": "full", )";
  const Config c = parse(kLlava, vision, root);
  EXPECT_EQ(c.format, Format::kPixtral);
  EXPECT_EQ(c.grid.resize_factor(), 16);
  EXPECT_TRUE(c.multimodal_projector_bias);
  EXPECT_EQ(c.num_hidden_layers, 24);
  EXPECT_FALSE(parse(kLlava, vision, root + R"("multimodal_projector_bias": false, )")
                   .multimodal_projector_bias);
}

TEST(Mistral3Config, TheProjectorMayReadAnEarlierBlock) {
  EXPECT_EQ(parse(kMistral, "{}", R"("vision_feature_layer": -2, )").num_hidden_layers, 23);
  const std::string full = R"("vision_feature_select_strategy": "full", )";
  EXPECT_EQ(parse(kLlava, R"({"model_type": "pixtral"})", full).num_hidden_layers, 23)
      << "the default of that class is -2";
}

TEST(Mistral3Config, ReadsRotaryThetaInBothSpellings) {
  EXPECT_EQ(parse(kMistral, R"({"rope_theta": 500})").rope_theta, 500);
  EXPECT_EQ(parse(kMistral, R"({"rope_parameters": {"rope_theta": 700}})").rope_theta, 700);
}

TEST(Mistral3Config, RefusesWhatTheTowerDoesNotHave) {
  const auto expect_refused = [](ErrorCode code, const std::string& message,
                                 const std::string& architecture, const std::string& vision,
                                 const std::string& root = "") {
    test::expect_error(code, message, [&] { (void)parse(architecture, vision, root); });
  };
  expect_refused(ErrorCode::kUnsupported, "only pixtral is supported, got clip_vision_model",
                 kLlava, "{}");
  expect_refused(ErrorCode::kUnsupported,
                 "vision_feature_select_strategy: only full is supported, got default", kLlava,
                 R"({"model_type": "pixtral"})");
  expect_refused(ErrorCode::kUnsupported, "expected a number in [-24, -1], got 3", kMistral, "{}",
                 R"("vision_feature_layer": 3, )");
  expect_refused(ErrorCode::kUnsupported, "head_dim: only 64 is supported, got 32", kMistral,
                 R"({"head_dim": 32})");
  expect_refused(ErrorCode::kUnsupported, "num_channels: only 3 is supported, got 1", kMistral,
                 R"({"num_channels": 1})");
  expect_refused(ErrorCode::kUnsupported, "projector_hidden_act: expected gelu_pytorch_tanh",
                 kMistral, "{}", R"("projector_hidden_act": "relu", )");
  expect_refused(ErrorCode::kCorruptData, "7 heads do not divide a width of 1024", kMistral,
                 R"({"num_attention_heads": 7})");
  test::expect_error(ErrorCode::kCorruptData, "hidden_size",
                     [] { (void)parse(kMistral, "{}", "", "{}"); });
}

TEST(Mistral3Config, ReadsTheGoldenCheckpoint) {
  const auto folders = test::golden_folders("mistral3", "config.json");
  if (folders.empty()) GTEST_SKIP() << "no folder mistral3; set FOVEA_GOLDEN_DIR";
  for (const std::string& folder : folders) {
    const checkpoint::HfConfig files = checkpoint::read_hf_config(folder);
    const Config c = parse_config(files);
    EXPECT_EQ(c.head_dim(), files.config.root().at("vision_config").at("head_dim").as_int());
    EXPECT_EQ(c.grid.spatial_merge_size, files.config.root().at("spatial_merge_size").as_int());
  }
}

}  // namespace
}  // namespace fovea::mistral3
