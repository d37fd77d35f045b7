// config.json of DeepSeek-VL.
#include "models/deepseek_vl/config.h"

#include <gtest/gtest.h>

#include "models/config_files.h"
#include "support/expect_error.h"

namespace fovea::deepseek_vl {
namespace {

Config parse(const std::string& text) { return parse_config(test::config_files({.config = text})); }

TEST(DeepseekVlConfig, ReadsThePublishedTower) {
  const Config c = parse(R"({"text_config": {"hidden_size": 2048}, "vision_config": {
      "hidden_size": 1024, "image_size": 384, "intermediate_size": 4096,
      "model_type": "siglip_vision_model", "num_attention_heads": 16, "num_hidden_layers": 24,
      "patch_size": 16}})");
  EXPECT_EQ(c.tower.hidden_size, 1024);
  EXPECT_EQ(c.tower.view.tokens(), 576);
  EXPECT_EQ(c.text_hidden_size, 2048);
}

TEST(DeepseekVlConfig, NeedsTheWidthOfTheLanguageModel) {
  test::expect_error(ErrorCode::kCorruptData, "text_config",
                     [] { (void)parse(R"({"vision_config": {}})"); });
}

}  // namespace
}  // namespace fovea::deepseek_vl
