// config.json of Gemma 3: what is read, what is refused.
#include "models/gemma3/config.h"

#include <gtest/gtest.h>

#include "models/config_files.h"
#include "support/expect_error.h"

namespace fovea::gemma3 {
namespace {

/// A published config.json, followed by `more`.
std::string published(const std::string& more = "") {
  return R"({"architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3",
    "text_config": {"hidden_size": 2560}, "vision_config": {"hidden_size": 1152,
    "image_size": 896, "intermediate_size": 4304, "model_type": "siglip_vision_model",
    "num_attention_heads": 16, "num_hidden_layers": 27, "patch_size": 14,
    "vision_use_head": false})" +
         more + "}";
}

Config parse(const std::string& text) { return parse_config(test::config_files({.config = text})); }

TEST(Gemma3Config, ReadsThePublishedTower) {
  const Config c = parse(published());
  EXPECT_EQ(c.tower.num_hidden_layers, 27);
  EXPECT_EQ(c.tower.view.patches(), 4096);
  EXPECT_EQ(c.tower.view.merge, 4);
  EXPECT_EQ(c.tower.view.tokens(), 256);
  EXPECT_EQ(c.text_hidden_size, 2560);
}

TEST(Gemma3Config, TokensOfAViewFollowFromTheirNumber) {
  EXPECT_EQ(parse(published(R"(, "mm_tokens_per_image": 1024)")).tower.view.merge, 2);
  EXPECT_EQ(parse(published(R"(, "mm_tokens_per_image": 4096)")).tower.view.merge, 1);
}

TEST(Gemma3Config, RefusesNumbersOfTokensThatNoPoolingGives) {
  for (const char* tokens : {"255", "225", "16384"}) {
    test::expect_error(
        ErrorCode::kUnsupported,
        std::string("mm_tokens_per_image: ") + tokens + " is not the number",
        [&] { (void)parse(published(std::string(", \"mm_tokens_per_image\": ") + tokens)); });
  }
}

}  // namespace
}  // namespace fovea::gemma3
