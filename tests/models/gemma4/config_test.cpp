// config.json of Gemma 4: defaults of the reference, what is read, what is refused.
#include "models/gemma4/config.h"

#include <gtest/gtest.h>

#include "models/config_files.h"
#include "support/expect_error.h"
#include "support/golden.h"

namespace fovea::gemma4 {
namespace {

Config parse(const std::string& vision, const std::string& text = R"({"hidden_size": 1536})") {
  return parse_config(test::config_files(
      {.config = "{\"vision_config\": " + vision + ", \"text_config\": " + text + "}"}));
}

TEST(Gemma4Config, DefaultsAreThoseOfTheReference) {
  const Config c = parse("{}");
  EXPECT_EQ(c.hidden_size, 768);
  EXPECT_EQ(c.intermediate_size, 3072);
  EXPECT_EQ(c.num_hidden_layers, 16);
  EXPECT_EQ(c.attention_width(), 768);
  EXPECT_EQ(c.position_embedding_size, 10240);
  EXPECT_EQ(c.hidden_activation, ops::Activation::kGeluTanh);
  EXPECT_EQ(c.rms_norm_eps, 1e-6);
  EXPECT_EQ(c.rope_theta, 100);
  EXPECT_FALSE(c.use_clipped_linears);
  EXPECT_FALSE(c.standardize);
  EXPECT_EQ(c.text_hidden_size, 1536);
  EXPECT_EQ(c.grid.resize_factor(), 48);
}

TEST(Gemma4Config, ReadsTheTowerOfTheLargeCheckpoints) {
  const Config c = parse(R"({"hidden_size": 1152, "intermediate_size": 4304, "head_dim": 72,
                             "global_head_dim": 72, "num_attention_heads": 16, "standardize": true,
                             "num_key_value_heads": 16, "num_hidden_layers": 27,
                             "use_clipped_linears": false, "attention_bias": false,
                             "rope_parameters": {"rope_theta": 100.0, "rope_type": "default"}})",
                         R"({"hidden_size": 5376})");
  EXPECT_EQ(c.attention_width(), 1152);
  EXPECT_EQ(c.num_hidden_layers, 27);
  EXPECT_TRUE(c.standardize);
  EXPECT_EQ(c.text_hidden_size, 5376);
}

TEST(Gemma4Config, RefusesWhatTheTowerDoesNotHave) {
  const auto expect_refused = [](ErrorCode code, const std::string& message,
                                 const std::string& vision) {
    test::expect_error(code, message, [&] { (void)parse(vision); });
  };
  expect_refused(ErrorCode::kUnsupported, "num_key_value_heads: only 12 is supported, got 4",
                 R"({"num_key_value_heads": 4})");
  expect_refused(ErrorCode::kUnsupported, "attention_bias: only false is supported",
                 R"({"attention_bias": true})");
  expect_refused(ErrorCode::kUnsupported, "rope_type: axial and default are supported, got yarn",
                 R"({"rope_parameters": {"rope_type": "yarn"}})");
  expect_refused(ErrorCode::kUnsupported, "hidden_activation: expected gelu_pytorch_tanh",
                 R"({"hidden_activation": "relu"})");
  expect_refused(ErrorCode::kUnsupported, "head size 60", R"({"head_dim": 60})");
  expect_refused(ErrorCode::kCorruptData, "12 heads of 1048576 are wider than 1048576",
                 R"({"head_dim": 1048576})");
  expect_refused(ErrorCode::kCorruptData, "rms_norm_eps: expected a number above 0, got 0",
                 R"({"rms_norm_eps": 0})");
  test::expect_error(ErrorCode::kCorruptData, "hidden_size", [] { (void)parse("{}", "{}"); });
}

TEST(Gemma4Config, ReadsTheGoldenCheckpoints) {
  const auto folders = test::golden_folders("gemma4", "config.json");
  if (folders.empty()) GTEST_SKIP() << "no folder gemma4; set FOVEA_GOLDEN_DIR";
  for (const std::string& folder : folders) {
    EXPECT_EQ(parse_config(checkpoint::read_hf_config(folder)).grid.spatial_merge_size, 3);
  }
}

}  // namespace
}  // namespace fovea::gemma4
