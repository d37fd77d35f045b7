// config.json of Molmo2 in both spellings: what is read, what is refused.
#include "models/molmo2/config.h"

#include <gtest/gtest.h>

#include "models/config_files.h"
#include "support/expect_error.h"

namespace fovea::molmo2 {
namespace {

Config parse(const std::string& vision, const std::string& adapter = "{}",
             const std::string& key = "vision_config") {
  return parse_config(test::config_files(
      {.config = "{\"" + key + "\": " + vision + ", \"adapter_config\": " + adapter + "}"}));
}

TEST(Molmo2Config, DefaultsAreThoseOfTheReference) {
  const Config c = parse("{}");
  EXPECT_EQ(c.tower.hidden_size, 1152);
  EXPECT_EQ(c.tower.intermediate_size, 4304);
  EXPECT_EQ(c.tower.num_hidden_layers, 25);
  EXPECT_EQ(c.tower.num_attention_heads, 16);
  EXPECT_EQ(c.tower.view.grid(), 27);
  EXPECT_EQ(c.vit_layers, (std::vector<std::int64_t>{24, 18}));
  EXPECT_EQ(c.adapter_head_dim(), 72);
  EXPECT_EQ(c.adapter_intermediate_size, 18944);
  EXPECT_EQ(c.tower.hidden_act, ops::Activation::kGeluTanh);
  EXPECT_EQ(c.adapter_hidden_act, ops::Activation::kSilu);
  EXPECT_EQ(c.text_hidden_size, 3584);
  EXPECT_EQ(c.feature_width(), 2304);
}

TEST(Molmo2Config, ReadsTheSpellingOfTheCheckpoints) {
  const Config c = parse(R"({"hidden_size": 144, "num_attention_heads": 2, "num_hidden_layers": 5,
                             "num_key_value_heads": 2, "head_dim": 72, "image_patch_size": 14,
                             "image_default_input_size": [238, 238], "image_num_pos": 289})",
                         R"({"hidden_size": 144, "num_attention_heads": 2, "vit_layers": [-3, -5],
                             "intermediate_size": 112, "text_hidden_size": 64,
                             "attention_bias": false})",
                         "vit_config");
  EXPECT_EQ(c.tower.view.grid(), 17);
  EXPECT_EQ(c.vit_layers, (std::vector<std::int64_t>{2, 0}));
  EXPECT_EQ(c.tower.num_hidden_layers, 3) << "none behind the last that the adapter reads";
  EXPECT_TRUE(c.attention_bias);
  EXPECT_FALSE(c.adapter_attention_bias);
}

TEST(Molmo2Config, RefusesWhatTheTowerDoesNotHave) {
  const auto expect_refused = [](ErrorCode code, const std::string& message,
                                 const std::string& vision, const std::string& adapter = "{}") {
    test::expect_error(code, message, [&] { (void)parse(vision, adapter); });
  };
  constexpr auto kUnsupported = ErrorCode::kUnsupported;
  constexpr auto kCorrupt = ErrorCode::kCorruptData;
  expect_refused(kUnsupported, "num_key_value_heads: only 16", R"({"num_key_value_heads": 4})");
  expect_refused(kUnsupported, "head_dim: only 72", R"({"head_dim": 64})");
  expect_refused(kUnsupported, "num_position_embeddings: only 729",
                 R"({"num_position_embeddings": 196})");
  expect_refused(kUnsupported, "are no whole patches of 16", R"({"patch_size": 16})");
  expect_refused(kCorrupt, "expected a number in [-25, 24], got 25", "{}",
                 R"({"vision_feature_layer": [25]})");
  expect_refused(kUnsupported, "block 24 occurs twice", "{}",
                 R"({"vision_feature_layer": [24, -1]})");
  expect_refused(kCorrupt, "expected 1 to 8 numbers, got 0", "{}",
                 R"({"vision_feature_layer": []})");
  expect_refused(kCorrupt, "block 24 of the adapter is beyond the 5",
                 R"({"num_hidden_layers": 5})");
  expect_refused(kUnsupported, "hidden_size: only 1152", "{}", R"({"hidden_size": 1024})");
  expect_refused(kUnsupported, "mlp_bias: only false", "{}", R"({"mlp_bias": true})");
  expect_refused(kUnsupported, "pooling_attention_mask: only true", "{}",
                 R"({"pooling_attention_mask": false})");
  expect_refused(kUnsupported, "intermediate_size: 100 is not a multiple of 8", "{}",
                 R"({"intermediate_size": 100})");
  test::expect_error(kCorrupt, "vit_config", [] { (void)parse("{}", "{}", "other"); });
}

}  // namespace
}  // namespace fovea::molmo2
