// config.json of Qwen2-VL: defaults of the reference, what is read, what is refused.
#include "models/qwen2_vl/config.h"

#include <gtest/gtest.h>

#include "models/config_files.h"
#include "support/expect_error.h"
#include "support/golden.h"

namespace fovea::qwen2_vl {
namespace {

Config parse(const std::string& vision) {
  return parse_config(test::config_files({.config = "{\"vision_config\": " + vision + "}"}));
}

TEST(Qwen2VlConfig, DefaultsAreThoseOfTheReference) {
  const Config c = parse("{}");
  EXPECT_EQ(c.depth, 32);
  EXPECT_EQ(c.embed_dim, 1280);
  EXPECT_EQ(c.hidden_size, 3584);
  EXPECT_EQ(c.mlp_width(), 5120);
  EXPECT_EQ(c.head_dim(), 80);
  EXPECT_EQ(c.joined_width(), 5120);
  EXPECT_EQ(c.grid.patch_dim(), 1176);
  EXPECT_EQ(c.hidden_act, ops::Activation::kQuickGelu);
}

TEST(Qwen2VlConfig, HiddenSizeIsTheWidthOfARow) {
  const Config c = parse(R"({"embed_dim": 160, "num_heads": 2, "hidden_size": 1536,
                             "mlp_ratio": 2.5, "spatial_patch_size": 16})");
  EXPECT_EQ(c.embed_dim, 160);
  EXPECT_EQ(c.hidden_size, 1536);
  EXPECT_EQ(c.mlp_width(), 400);
  EXPECT_EQ(c.grid.patch_size, 16);
}

TEST(Qwen2VlConfig, TakesSecondNamesOfDepthAndHeads) {
  const Config c = parse(R"({"num_hidden_layers": 26, "num_attention_heads": 8})");
  EXPECT_EQ(c.depth, 26);
  EXPECT_EQ(c.num_heads, 8);
}

TEST(Qwen2VlConfig, RefusesWhatTheTowerDoesNotHave) {
  const auto expect_refused = [](ErrorCode code, const std::string& message,
                                 const std::string& vision) {
    test::expect_error(code, message, [&] { (void)parse(vision); });
  };
  expect_refused(ErrorCode::kCorruptData, "vision_config.mlp_ratio: expected a number in (0, 64]",
                 R"({"mlp_ratio": 0})");
  expect_refused(ErrorCode::kCorruptData, "7 heads do not divide a width of 1280",
                 R"({"num_heads": 7})");
  expect_refused(ErrorCode::kUnsupported, "temporal_patch_size: only 2 is supported, got 1",
                 R"({"temporal_patch_size": 1})");
  expect_refused(ErrorCode::kUnsupported, "vision_config.hidden_act", R"({"hidden_act": "tanh"})");
}

TEST(Qwen2VlConfig, ReadsTheGoldenCheckpoint) {
  for (const std::string& folder : test::golden_folders("qwen2_vl", "config.json")) {
    const Config c = parse_config(checkpoint::read_hf_config(folder));
    EXPECT_EQ(c.head_dim(), 80);
    EXPECT_EQ(c.hidden_size, 64);
  }
}

}  // namespace
}  // namespace fovea::qwen2_vl
