// config.json of Kimi-VL: defaults of the reference, what is read, what is refused.
#include "models/kimi_vl/config.h"

#include <gtest/gtest.h>

#include "models/config_files.h"
#include "support/expect_error.h"
#include "support/golden.h"

namespace fovea::kimi_vl {
namespace {

Config parse(const std::string& vision, const std::string& text = R"({"hidden_size": 2048})") {
  return parse_config(test::config_files(
      {.config = "{\"vision_config\": " + vision + ", \"text_config\": " + text + "}"}));
}

TEST(KimiVlConfig, DefaultsAreThoseOfTheReferenceAndOfPublishedCheckpoints) {
  const std::string published = R"({"model_type": "moonvit", "patch_size": 14,
      "init_pos_emb_height": 64, "init_pos_emb_width": 64, "num_attention_heads": 16,
      "num_hidden_layers": 27, "hidden_size": 1152, "intermediate_size": 4304,
      "merge_kernel_size": [2, 2]})";
  for (const std::string& vision : {std::string("{}"), published}) {
    const Config c = parse(vision);
    EXPECT_EQ(c.num_hidden_layers, 27);
    EXPECT_EQ(c.hidden_size, 1152);
    EXPECT_EQ(c.intermediate_size, 4304);
    EXPECT_EQ(c.head_dim(), 72);
    EXPECT_EQ(c.init_pos_emb_height, 64);
    EXPECT_EQ(c.init_pos_emb_width, 64);
    EXPECT_EQ(c.joined_width(), 4608);
    EXPECT_EQ(c.text_hidden_size, 2048);
    EXPECT_EQ(c.grid.patch_dim(), 588);
    EXPECT_EQ(c.grid.resize_factor(), 28);
  }
}

TEST(KimiVlConfig, ReadsSizesOfOtherTowers) {
  const Config c = parse(R"({"hidden_size": 144, "num_attention_heads": 2, "patch_size": 16,
                             "init_pos_emb_height": 12, "init_pos_emb_width": 18,
                             "merge_kernel_size": [1, 1]})",
                         R"({"hidden_size": 96})");
  EXPECT_EQ(c.init_pos_emb_height, 12);
  EXPECT_EQ(c.init_pos_emb_width, 18);
  EXPECT_EQ(parse(R"({"init_pos_emb_height": 12})").init_pos_emb_width, 64);
  EXPECT_EQ(c.grid.spatial_merge_size, 1);
  EXPECT_EQ(c.grid.patch_size, 16);
  EXPECT_EQ(c.text_hidden_size, 96);
}

TEST(KimiVlConfig, RefusesWhatTheTowerDoesNotHave) {
  const auto expect_refused = [](ErrorCode code, const std::string& message,
                                 const std::string& vision) {
    test::expect_error(code, message, [&] { (void)parse(vision); });
  };
  expect_refused(ErrorCode::kUnsupported,
                 "merge_kernel_size: only squares are supported, got 2 x 1",
                 R"({"merge_kernel_size": [2, 1]})");
  expect_refused(ErrorCode::kCorruptData, "merge_kernel_size: expected 2 numbers, got 1",
                 R"({"merge_kernel_size": [2]})");
  expect_refused(ErrorCode::kCorruptData, "7 heads do not divide a width of 1152",
                 R"({"num_attention_heads": 7})");
  expect_refused(ErrorCode::kUnsupported, "temporal_patch_size: only 1 is supported, got 2",
                 R"({"temporal_patch_size": 2})");
  test::expect_error(ErrorCode::kCorruptData, "hidden_size", [] { (void)parse("{}", "{}"); });
}

TEST(KimiVlConfig, ReadsTheGoldenCheckpoint) {
  for (const std::string& folder : test::golden_folders("kimi_vl", "config.json")) {
    EXPECT_EQ(parse_config(checkpoint::read_hf_config(folder)).head_dim(), 72);
  }
}

}  // namespace
}  // namespace fovea::kimi_vl
