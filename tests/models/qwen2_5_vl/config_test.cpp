// config.json of Qwen2.5-VL: defaults of the reference, published sizes, what is refused.
#include "models/qwen2_5_vl/config.h"

#include <gtest/gtest.h>

#include "core/check.h"
#include "models/config_files.h"
#include "support/expect_error.h"
#include "support/golden.h"

namespace fovea::qwen2_5_vl {
namespace {

Config parse(const std::string& vision,
             const std::string& architecture = "Qwen2_5_VLForConditionalGeneration") {
  return parse_config(test::config_files({.config = "{\"architectures\": [\"" + architecture +
                                                    "\"], \"vision_config\": " + vision + "}"}));
}

TEST(Qwen25VlConfig, DefaultsAreThoseOfTheReference) {
  const Config c = parse("{}");
  EXPECT_EQ(c.depth, 32);
  EXPECT_EQ(c.hidden_size, 3584);
  EXPECT_EQ(c.intermediate_size, 3420);
  EXPECT_EQ(c.num_heads, 16);
  EXPECT_EQ(c.out_hidden_size, 3584);
  EXPECT_EQ(c.window_side(), 4);
  EXPECT_EQ(c.num_full(), 4);
  EXPECT_TRUE(c.is_full(7));
  EXPECT_FALSE(c.is_full(8));
  EXPECT_EQ(c.grid.patch_dim(), 1176);
  EXPECT_EQ(c.hidden_act, ops::Activation::kSilu);
}

TEST(Qwen25VlConfig, ReadsEveryPublishedSize) {
  struct Size {
    std::int64_t intermediate, out;
  };
  for (const Size& size : {Size{3420, 2048}, {3420, 3584}, {3456, 5120}, {3456, 8192}}) {
    const Config c =
        parse(cat(R"({"depth": 32, "hidden_act": "silu", "hidden_size": 1280, "in_chans": 3,
                "num_heads": 16, "patch_size": 14, "spatial_merge_size": 2,
                "spatial_patch_size": 14, "window_size": 112, "tokens_per_second": 2,
                "fullatt_block_indexes": [7, 15, 23, 31], "temporal_patch_size": 2,
                "intermediate_size": )",
                  size.intermediate, ", \"out_hidden_size\": ", size.out, "}"));
    EXPECT_EQ(c.head_dim(), 80);
    EXPECT_EQ(c.intermediate_size, size.intermediate);
    EXPECT_EQ(c.out_hidden_size, size.out);
    EXPECT_EQ(c.joined_width(), 5120);
  }
}

TEST(Qwen25VlConfig, NoBlockNeedsFullAttention) {
  EXPECT_EQ(parse(R"({"fullatt_block_indexes": []})").num_full(), 0);
  EXPECT_EQ(parse(R"({"depth": 8})").num_full(), 1) << "defaults beyond the depth name no block";
  EXPECT_EQ(parse(R"({"depth": 3, "fullatt_block_indexes": [1, 3]})").num_full(), 1)
      << "and neither do those of a file, in the reference";
}

TEST(Qwen25VlConfig, HeadsOfQMayShareThoseOfKAndV) {
  constexpr const char* kExaone = "Exaone4_5_ForConditionalGeneration";
  EXPECT_EQ(parse("{}").num_key_value_heads, 16);
  EXPECT_EQ(parse(R"({"num_heads": 8})").num_key_value_heads, 8);
  EXPECT_EQ(parse("{}", kExaone).num_key_value_heads, 8);
  EXPECT_EQ(parse(R"({"num_key_value_heads": 4})", kExaone).num_key_value_heads, 4);
  test::expect_error(ErrorCode::kCorruptData, "num_key_value_heads: 3 do not divide 16 heads",
                     [] { (void)parse(R"({"num_key_value_heads": 3})"); });
}

TEST(Qwen25VlConfig, AThinkerHasItsTowerOneLevelDeeper) {
  const Config c = parse_config(
      test::config_files({.config = R"({"architectures": ["Qwen2_5OmniModel"], "thinker_config":
           {"vision_config": {"depth": 2, "fullatt_block_indexes": [1]}}})"}));
  EXPECT_EQ(c.depth, 2);
  EXPECT_EQ(c.num_full(), 1);
}

TEST(Qwen25VlConfig, TakesSecondNamesOfDepthAndHeads) {
  const Config c = parse(R"({"num_hidden_layers": 26, "num_attention_heads": 8})");
  EXPECT_EQ(c.depth, 26);
  EXPECT_EQ(c.num_heads, 8);
}

TEST(Qwen25VlConfig, RefusesWhatTheTowerDoesNotHave) {
  const auto expect_refused = [](ErrorCode code, const std::string& message,
                                 const std::string& vision) {
    test::expect_error(code, message, [&] { (void)parse(vision); });
  };
  expect_refused(ErrorCode::kCorruptData,
                 "vision_config.window_size: 27 is less than a token of 28 pixels",
                 R"({"window_size": 27})");
  expect_refused(ErrorCode::kCorruptData, "expected a block index below 1024, got 1024",
                 R"({"depth": 4, "fullatt_block_indexes": [1024]})");
  expect_refused(ErrorCode::kCorruptData, "7 heads do not divide a width of 1280",
                 R"({"hidden_size": 1280, "num_heads": 7})");
  expect_refused(ErrorCode::kUnsupported, "temporal_patch_size: only 2 is supported, got 1",
                 R"({"temporal_patch_size": 1})");
  expect_refused(ErrorCode::kUnsupported, "vision_config.hidden_act", R"({"hidden_act": "tanh"})");
}

TEST(Qwen25VlConfig, ReadsTheGoldenCheckpoint) {
  for (const std::string& folder : test::golden_folders("qwen2_5_vl", "config.json")) {
    const Config c = parse_config(checkpoint::read_hf_config(folder));
    EXPECT_EQ(c.head_dim(), 80);
    EXPECT_EQ(c.out_hidden_size, 64);
    EXPECT_NE(c.intermediate_size % 8, 0) << "shows that odd widths are filled up";
    EXPECT_GT(c.num_full(), 0);
    EXPECT_LT(c.num_full(), c.depth);
  }
}

}  // namespace
}  // namespace fovea::qwen2_5_vl
