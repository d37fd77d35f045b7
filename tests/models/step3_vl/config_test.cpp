// config.json of Step3-VL: the published values, and every refusal.
#include "models/step3_vl/config.h"

#include <gtest/gtest.h>

#include "core/check.h"
#include "models/config_files.h"
#include "support/expect_error.h"
#include "support/golden.h"

namespace fovea::step3_vl {
namespace {

/// config.json with this text for vision_config, and further keys.
Config parse(const std::string& vision, const std::string& more = "") {
  return parse_config(
      test::config_files({.config = R"({"architectures": ["Step3VLForConditionalGeneration"],)"
                                    R"( "vision_config": )" +
                                    vision + more + "}"}));
}

void expect_refused(ErrorCode code, const std::string& message, const std::string& vision,
                    const std::string& more = "") {
  test::expect_error(code, message, [&] { (void)parse(vision, more); });
}

TEST(Step3VlConfig, DefaultsAreThoseOfTheReference) {
  const Config c = parse("{}");
  EXPECT_EQ(c.hidden_size, 1792);
  EXPECT_EQ(c.num_hidden_layers, 63);
  EXPECT_EQ(c.num_attention_heads, 16);
  EXPECT_EQ(c.intermediate_size, 3072);
  EXPECT_EQ(c.output_hidden_size, 4096);
  EXPECT_EQ(c.hidden_act, ops::Activation::kQuickGelu);
  EXPECT_EQ(c.layer_norm_eps, 1e-6);
  EXPECT_TRUE(c.enable_patch);
  EXPECT_EQ(c.text_hidden_size, 7168);
  EXPECT_FALSE(c.max_tokens.has_value());
}

TEST(Step3VlConfig, ReadsEveryKey) {
  const Config c = parse(R"({"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
      "intermediate_size": 96, "output_hidden_size": 24, "hidden_act": "gelu",
      "layer_norm_eps": 1e-5, "enable_patch": false})",
                         R"(, "hidden_size": 8, "text_config": {"hidden_size": 40,
                         "max_seq_len": 100})");
  EXPECT_EQ(c.hidden_size, 64);
  EXPECT_EQ(c.num_hidden_layers, 2);
  EXPECT_EQ(c.num_attention_heads, 4);
  EXPECT_EQ(c.intermediate_size, 96);
  EXPECT_EQ(c.output_hidden_size, 24);
  EXPECT_EQ(c.hidden_act, ops::Activation::kGeluErf);
  EXPECT_EQ(c.layer_norm_eps, 1e-5);
  EXPECT_FALSE(c.enable_patch);
  EXPECT_EQ(c.text_hidden_size, 40);
  EXPECT_EQ(c.max_tokens, 100);
}

TEST(Step3VlConfig, TheWidthOfARowMayStandAtTheTop) {
  EXPECT_EQ(parse("{}", R"(, "hidden_size": 48)").text_hidden_size, 48);
  EXPECT_EQ(parse("{}", R"(, "hidden_size": 48, "text_config": {})").text_hidden_size, 48);
}

TEST(Step3VlConfig, RefusesWhatTheTowerDoesNotHave) {
  constexpr ErrorCode kUnsupported = ErrorCode::kUnsupported;
  expect_refused(kUnsupported, "vision_config.image_size: only 728 is supported, got 448",
                 R"({"image_size": 448})");
  expect_refused(kUnsupported, "patch_size: only 14 is supported, got 16", R"({"patch_size": 16})");
  expect_refused(kUnsupported, "num_channels: only 3 is supported, got 1",
                 R"({"num_channels": 1})");
  expect_refused(kUnsupported, "understand_projector_stride: only 2 is supported, got 1", "{}",
                 R"(, "understand_projector_stride": 1)");
  expect_refused(kUnsupported, "vision_config.hidden_act", R"({"hidden_act": "swish_glu"})");
  expect_refused(kUnsupported, "head size 7 (1792 / 256) is not a multiple of 8",
                 R"({"num_attention_heads": 256})");
}

TEST(Step3VlConfig, RefusesWrongNumbersByName) {
  constexpr ErrorCode kCorrupt = ErrorCode::kCorruptData;
  for (const char* key : {"hidden_size", "num_attention_heads", "intermediate_size",
                          "output_hidden_size", "num_hidden_layers"}) {
    expect_refused(kCorrupt, cat("vision_config.", key, ": expected a number in [1, "),
                   cat("{\"", key, "\": 0}"));
  }
  expect_refused(kCorrupt, "layer_norm_eps: expected a number above 0, got 0",
                 R"({"layer_norm_eps": 0})");
  expect_refused(kCorrupt, "text_config.hidden_size", "{}",
                 R"(, "text_config": {"hidden_size": 0})");
  expect_refused(kCorrupt, "text_config.max_seq_len", "{}",
                 R"(, "text_config": {"max_seq_len": -1})");
  expect_refused(kCorrupt, "vision_config", "null");
}

TEST(Step3VlView, HasTheTokensOfItsSide) {
  EXPECT_EQ(kViews[kGlobal].grid(), 52);
  EXPECT_EQ(kViews[kGlobal].tokens(), 169);
  EXPECT_EQ(kViews[kLocal].grid(), 36);
  EXPECT_EQ(kViews[kLocal].tokens(), 81);
}

TEST(Step3VlConfig, ReadsTheGoldenCheckpoint) {
  for (const std::string& folder : test::golden_folders("step3_vl", "config.json")) {
    const Config c = parse_config(checkpoint::read_hf_config(folder));
    EXPECT_EQ(c.hidden_size, 128);
    EXPECT_EQ(c.num_hidden_layers, 3);
    EXPECT_EQ(c.text_hidden_size, 64);
    EXPECT_EQ(c.max_tokens, 512);
  }
}

}  // namespace
}  // namespace fovea::step3_vl
