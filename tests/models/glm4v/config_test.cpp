// config.json of GLM-4.1V: defaults of the reference, what is read, what is refused.
#include "models/glm4v/config.h"

#include <gtest/gtest.h>

#include <cmath>

#include "models/config_files.h"
#include "support/expect_error.h"
#include "support/golden.h"

namespace fovea::glm4v {
namespace {

Config parse(const std::string& vision,
             const std::string& architecture = "Glm4vForConditionalGeneration") {
  return parse_config(test::config_files({.config = "{\"architectures\": [\"" + architecture +
                                                    "\"], \"vision_config\": " + vision + "}"}));
}

TEST(Glm4vConfig, DefaultsAreThoseOfTheReferenceAndOfGlm41V9B) {
  const Config c = parse("{}");
  EXPECT_EQ(c.depth, 24);
  EXPECT_EQ(c.hidden_size, 1536);
  EXPECT_EQ(c.head_dim(), 128);
  EXPECT_EQ(c.position_side(), 24);
  EXPECT_EQ(c.out_hidden_size, 4096);
  EXPECT_EQ(c.intermediate_size, 13696);
  EXPECT_EQ(c.grid.merge_area() * c.hidden_size, 6144);
  EXPECT_EQ(c.grid.patch_dim(), 1176);
  EXPECT_EQ(c.hidden_act, ops::Activation::kSilu);
  EXPECT_FALSE(c.attention_bias);
  EXPECT_EQ(c.rms_norm_eps, 1e-5);
}

TEST(Glm4vConfig, WithATableTheMlpOfABlockIsAsWideAsARow) {
  const Config c = parse(R"({"out_hidden_size": 64, "intermediate_size": 192})");
  EXPECT_TRUE(c.has_table);
  EXPECT_FALSE(c.has_canvas);
  EXPECT_EQ(c.mlp_width, 64);
  EXPECT_EQ(c.merger_width, 192);
}

TEST(Glm4vConfig, GlmOcrHasNoTableAndOtherWidths) {
  constexpr const char* kOcr = "GlmOcrForConditionalGeneration";
  const Config c = parse("{}", kOcr);
  EXPECT_FALSE(c.has_table);
  EXPECT_FALSE(c.has_canvas);
  EXPECT_EQ(c.hidden_size, 1024);
  EXPECT_EQ(c.head_dim(), 64);
  EXPECT_EQ(c.out_hidden_size, 1536);
  EXPECT_TRUE(c.attention_bias);
  EXPECT_EQ(c.mlp_width, 4096);
  EXPECT_EQ(c.merger_width, 3 * 1536);
  EXPECT_TRUE(std::isinf(c.swiglu_limit));
  EXPECT_NO_THROW((void)parse(R"({"image_size": 13})", kOcr)) << "nothing is that large";
}

TEST(Glm4vConfig, Glm5LimitsItsGatedMlps) {
  constexpr const char* kNext = "Glm5NextForConditionalGeneration";
  const Config c = parse("{}", kNext);
  EXPECT_FALSE(c.has_table);
  EXPECT_TRUE(c.has_canvas);
  EXPECT_EQ(c.merger_width, 10240);
  EXPECT_EQ(c.swiglu_limit, 10);
  const Config read = parse(R"({"projection_intermediate_size": 112, "swiglu_limit": 1.5})", kNext);
  EXPECT_EQ(read.merger_width, 112);
  EXPECT_EQ(read.swiglu_limit, 1.5);
  test::expect_error(ErrorCode::kCorruptData, "vision_config.swiglu_limit",
                     [&] { (void)parse(R"({"swiglu_limit": -1})", kNext); });
}

TEST(Glm4vConfig, ReadsEveryKey) {
  const Config c =
      parse(R"({"depth": 3, "hidden_size": 128, "num_heads": 2, "image_size": [112, 112],
      "out_hidden_size": 64, "intermediate_size": 192, "attention_bias": true, "rms_norm_eps": 1e-6,
      "hidden_act": "gelu", "patch_size": [14, 14], "rope_parameters": {"rope_theta": 500}})");
  EXPECT_EQ(c.depth, 3);
  EXPECT_EQ(c.head_dim(), 64);
  EXPECT_EQ(c.position_side(), 8);
  EXPECT_EQ(c.out_hidden_size, 64);
  EXPECT_EQ(c.intermediate_size, 192);
  EXPECT_TRUE(c.attention_bias);
  EXPECT_EQ(c.rms_norm_eps, 1e-6);
  EXPECT_EQ(c.hidden_act, ops::Activation::kGeluErf);
  EXPECT_EQ(c.rope_theta, 500);
}

TEST(Glm4vConfig, TakesSecondNamesOfDepthAndHeads) {
  const Config c = parse(R"({"num_hidden_layers": 26, "num_attention_heads": 8})");
  EXPECT_EQ(c.depth, 26);
  EXPECT_EQ(c.num_heads, 8);
}

TEST(Glm4vConfig, RefusesWhatTheTowerDoesNotHave) {
  const auto expect_refused = [](ErrorCode code, const std::string& message,
                                 const std::string& vision) {
    test::expect_error(code, message, [&] { (void)parse(vision); });
  };
  expect_refused(ErrorCode::kCorruptData, "7 heads do not divide a width of 1536",
                 R"({"num_heads": 7})");
  expect_refused(ErrorCode::kCorruptData, "image_size: 13 pixels hold no patch of 14",
                 R"({"image_size": 13})");
  expect_refused(ErrorCode::kCorruptData, "vision_config.rms_norm_eps", R"({"rms_norm_eps": 0})");
  expect_refused(ErrorCode::kUnsupported, "temporal_patch_size: only 2 is supported, got 1",
                 R"({"temporal_patch_size": 1})");
  expect_refused(ErrorCode::kUnsupported, "vision_config.hidden_act", R"({"hidden_act": "tanh"})");
}

TEST(Glm4vConfig, ReadsTheGoldenCheckpoint) {
  for (const std::string& folder : test::golden_folders("glm4v", "config.json")) {
    const Config c = parse_config(checkpoint::read_hf_config(folder));
    EXPECT_EQ(c.head_dim(), 64);
    EXPECT_EQ(c.position_side(), 8);
    EXPECT_EQ(c.out_hidden_size, 64);
  }
}

}  // namespace
}  // namespace fovea::glm4v
