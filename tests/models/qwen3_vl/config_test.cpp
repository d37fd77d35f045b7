// config.json of Qwen3-VL: both spellings, defaults, and every refusal.
#include "models/qwen3_vl/config.h"

#include <gtest/gtest.h>

#include "core/check.h"
#include "models/config_files.h"
#include "support/expect_error.h"
#include "support/golden.h"

namespace fovea::qwen3_vl {
namespace {

Config parse(const std::string& vision,
             const std::string& architecture = "Qwen3VLForConditionalGeneration") {
  return parse_config(test::config_files({.config = "{\"architectures\": [\"" + architecture +
                                                    "\"], \"vision_config\": " + vision + "}"}));
}

void expect_refused(ErrorCode code, const std::string& message, const std::string& vision) {
  test::expect_error(code, message, [&] { (void)parse(vision); });
}

TEST(Qwen3VlConfig, DefaultsAreThoseOfTheReference) {
  const Config c = parse("{}");
  EXPECT_EQ(c.depth, 27);
  EXPECT_EQ(c.hidden_size, 1152);
  EXPECT_EQ(c.head_dim(), 72);
  EXPECT_EQ(c.intermediate_size, 4304);
  EXPECT_EQ(c.position_side(), 48);
  EXPECT_EQ(c.deepstack_visual_indexes, (std::vector<std::int64_t>{8, 16, 24}));
  EXPECT_EQ(c.out_width(), 4 * 3584);
  EXPECT_EQ(c.joined_width(), 4 * 1152);
  EXPECT_EQ(c.grid.patch_dim(), 1536);
}

TEST(Qwen3VlConfig, Qwen35HasNoDeepstackUnlessListed) {
  constexpr const char* kQwen35 = "Qwen3_5ForConditionalGeneration";
  EXPECT_EQ(parse("{}", kQwen35).num_deepstack(), 0);
  EXPECT_EQ(parse("{\"deepstack_visual_indexes\": [3]}", kQwen35).num_deepstack(), 1);
}

TEST(Qwen3VlConfig, AThinkerNamesItsMergersOtherwise) {
  EXPECT_EQ(parse("{}").mergers.norm, ".norm");
  const Config c = parse_config(
      test::config_files({.config = R"({"architectures": ["Qwen3OmniMoeForConditionalGeneration"],
           "thinker_config": {"vision_config": {"depth": 26, "hidden_size": 1024}}})"}));
  EXPECT_EQ(c.depth, 26);
  EXPECT_EQ(c.mergers.levels, "merger_list.");
  EXPECT_EQ(c.mergers.norm, ".ln_q");
  EXPECT_EQ(c.num_deepstack(), 3);
}

TEST(Qwen3VlConfig, ReadsEveryPublishedSizeOfQwen35) {
  struct Size {
    const char* architecture;
    std::int64_t depth, hidden, heads, intermediate, out;
  };
  constexpr const char* kDense = "Qwen3_5ForConditionalGeneration";
  constexpr const char* kMoe = "Qwen3_5MoeForConditionalGeneration";
  for (const Size& size : {Size{kDense, 12, 768, 12, 3072, 1024},    // 0.8B
                           Size{kDense, 24, 1024, 16, 4096, 2048},   // 2B
                           Size{kDense, 24, 1024, 16, 4096, 2560},   // 4B
                           Size{kDense, 27, 1152, 16, 4304, 4096},   // 9B
                           Size{kDense, 27, 1152, 16, 4304, 5120},   // 27B
                           Size{kMoe, 27, 1152, 16, 4304, 2048}}) {  // 35B-A3B
    const Config c =
        parse(cat("{\"depth\": ", size.depth, ", \"hidden_size\": ", size.hidden,
                  ", \"num_heads\": ", size.heads, ", \"intermediate_size\": ", size.intermediate,
                  ", \"out_hidden_size\": ", size.out, ", \"num_position_embeddings\": 2304}"),
              size.architecture);
    EXPECT_EQ(c.head_dim(), size.hidden / size.heads);
    EXPECT_EQ(c.intermediate_size, size.intermediate);
    EXPECT_EQ(c.out_width(), size.out) << "a row is the main embedding alone";
  }
}

TEST(Qwen3VlConfig, TakesSecondNamesOfDepthAndHeads) {
  const Config c = parse(R"({"num_hidden_layers": 26, "num_attention_heads": 8})");
  EXPECT_EQ(c.depth, 26);
  EXPECT_EQ(c.num_heads, 8);
}

TEST(Qwen3VlConfig, AcceptsListsAndOlderNamesOfKeys) {
  EXPECT_EQ(parse("{\"patch_size\": [14, 14], \"in_chans\": 3}").grid.patch_size, 14);
  EXPECT_EQ(parse("{\"spatial_patch_size\": 12}").grid.patch_size, 12);
}

TEST(Qwen3VlConfig, PositionsBeyondASquareAreLeftOver) {
  EXPECT_EQ(parse("{\"num_position_embeddings\": 10}").position_side(), 3);
  EXPECT_EQ(parse("{\"num_position_embeddings\": 9}").position_side(), 3);
}

TEST(Qwen3VlConfig, ReadsRopeTheta) {
  EXPECT_EQ(parse("{\"rope_parameters\": {\"rope_theta\": 500.0}}").rope_theta, 500);
}

TEST(Qwen3VlConfig, ReadsTheActivationOfTheMlp) {
  EXPECT_EQ(parse("{}").hidden_act, ops::Activation::kGeluTanh);
  EXPECT_EQ(parse("{\"hidden_act\": \"silu\"}").hidden_act, ops::Activation::kSilu);
  expect_refused(ErrorCode::kUnsupported,
                 "config.json: vision_config.hidden_act: expected gelu_pytorch_tanh, gelu_new, "
                 "gelu, quick_gelu, silu, swish or relu2, got relu",
                 "{\"hidden_act\": \"relu\"}");
}

TEST(Qwen3VlConfig, RefusalsNameFileAndKey) {
  expect_refused(ErrorCode::kCorruptData, "config.json: vision_config.num_heads",
                 "{\"num_heads\": \"16\"}");
  expect_refused(ErrorCode::kCorruptData,
                 "config.json: vision_config.depth: expected a number in [1, 1024], got 0",
                 "{\"depth\": 0}");
  expect_refused(ErrorCode::kUnsupported,
                 "config.json: vision_config.in_channels: only 3 is supported, got 1",
                 "{\"in_channels\": 1}");
  expect_refused(ErrorCode::kUnsupported,
                 "config.json: vision_config.in_chans: only 3 is supported, got 4",
                 "{\"in_chans\": 4}");
  expect_refused(ErrorCode::kUnsupported,
                 "config.json: vision_config.temporal_patch_size: only 2 is supported, got 3",
                 "{\"temporal_patch_size\": 3}");
  expect_refused(
      ErrorCode::kCorruptData,
      "vision_config.deepstack_visual_indexes[0]: expected a block index below 27, got 27",
      "{\"deepstack_visual_indexes\": [27]}");
}

TEST(Qwen3VlConfig, RefusesLevelsThatWouldStayEmpty) {
  expect_refused(ErrorCode::kCorruptData,
                 "vision_config.deepstack_visual_indexes[1]: expected ascending block indexes, got "
                 "3 after 3",
                 "{\"deepstack_visual_indexes\": [3, 3, 3]}");
  expect_refused(ErrorCode::kCorruptData,
                 "vision_config.deepstack_visual_indexes: absent, and the default 8, 16, 24 needs "
                 "more than 24 blocks",
                 "{\"depth\": 24}");
}

TEST(Qwen3VlConfig, RefusesHeadsThatKernelsCannotRun) {
  expect_refused(ErrorCode::kCorruptData,
                 "config.json: vision_config: 5 heads do not divide a width of 1152",
                 "{\"num_heads\": 5}");
  expect_refused(ErrorCode::kUnsupported,
                 "config.json: vision_config: head size 36 (1152 / 32) is not a multiple of 8",
                 "{\"num_heads\": 32}");
}

TEST(Qwen3VlConfig, RefusesSizesThatWouldOverflowOrFillTheMemory) {
  expect_refused(ErrorCode::kCorruptData,
                 "config.json: vision_config.patch_size: expected a number, got a list of 0",
                 "{\"patch_size\": []}");
  expect_refused(ErrorCode::kCorruptData,
                 "config.json: vision_config.hidden_size: expected a number in [1, 1048576], got "
                 "1048577",
                 "{\"hidden_size\": 1048577}");
  expect_refused(ErrorCode::kCorruptData,
                 "config.json: vision_config.depth: expected a number in [1, 1024], got 1025",
                 "{\"depth\": 1025}");
  expect_refused(
      ErrorCode::kCorruptData,
      "config.json: vision_config: patch_size 4096 times spatial_merge_size 2 is above 4096",
      "{\"patch_size\": 4096}");
}

TEST(Qwen3VlConfig, ReadsTheGoldenCheckpoint) {
  const auto expect_read = [](const std::string& family, std::int64_t num_deepstack) {
    for (const std::string& folder : test::golden_folders(family, "config.json")) {
      const Config c = parse_config(checkpoint::read_hf_config(folder));
      EXPECT_EQ(c.head_dim(), 72) << folder;
      EXPECT_EQ(c.num_deepstack(), num_deepstack) << folder;
    }
  };
  expect_read("qwen3_vl", 3);
  expect_read("qwen3_5", 0);
}

}  // namespace
}  // namespace fovea::qwen3_vl
