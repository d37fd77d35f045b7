// config.json of PaliGemma.
#include "models/paligemma/config.h"

#include <gtest/gtest.h>

#include "models/config_files.h"
#include "support/expect_error.h"

namespace fovea::paligemma {
namespace {

Config parse(const std::string& text) { return parse_config(test::config_files({.config = text})); }

TEST(PaliGemmaConfig, ReadsThePublishedTower) {
  const Config c = parse(R"({"projection_dim": 2304, "vision_config": {"hidden_size": 1152,
      "image_size": 448, "intermediate_size": 4304, "model_type": "siglip_vision_model",
      "num_attention_heads": 16, "num_hidden_layers": 27, "patch_size": 14,
      "projection_dim": 2048, "projector_hidden_act": "gelu_fast"}})");
  EXPECT_EQ(c.tower.view.tokens(), 1024);
  EXPECT_EQ(c.projection_dim, 2304) << "that of the root counts in the reference";
  EXPECT_EQ(parse(R"({"vision_config": {}})").projection_dim, 2048);
}

TEST(PaliGemmaConfig, NeedsATower) {
  test::expect_error(ErrorCode::kCorruptData, "vision_config", [] { (void)parse("{}"); });
}

}  // namespace
}  // namespace fovea::paligemma
