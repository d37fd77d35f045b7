// config.json of HunyuanOCR: defaults of the reference, what is read, what is refused.
#include "models/hunyuan_vl/config.h"

#include <gtest/gtest.h>

#include "models/config_files.h"
#include "support/expect_error.h"
#include "support/golden.h"

namespace fovea::hunyuan_vl {
namespace {

Config parse(const std::string& vision, const std::string& width = R"("hidden_size": 1024)") {
  return parse_config(
      test::config_files({.config = "{\"vision_config\": " + vision + ", " + width + "}"}));
}

TEST(HunyuanVlConfig, DefaultsAreThoseOfTheReferenceAndOfPublishedCheckpoints) {
  const std::string published = R"({"hidden_act": "gelu", "hidden_size": 1152,
      "img_max_token_num": 4096, "intermediate_size": 4304, "interpolate_mode": "bilinear",
      "max_image_size": 2048, "max_vit_seq_len": 16384, "num_attention_heads": 16,
      "num_key_value_heads": 4, "num_channels": 3, "num_hidden_layers": 27,
      "out_hidden_size": 4096, "patch_size": 16, "rms_norm_eps": 1e-05, "spatial_merge_size": 2})";
  for (const std::string& vision : {std::string("{}"), published}) {
    const Config c = parse(vision);
    EXPECT_EQ(c.num_hidden_layers, 27);
    EXPECT_EQ(c.hidden_size, 1152);
    EXPECT_EQ(c.intermediate_size, 4304);
    EXPECT_EQ(c.num_attention_heads, 16);
    EXPECT_EQ(c.position_side(), 128);
    EXPECT_EQ(c.rms_norm_eps, 1e-5);
    EXPECT_EQ(c.hidden_act, ops::Activation::kGeluErf);
    EXPECT_EQ(c.joined_width(), 4608);
    EXPECT_EQ(c.wide(), 4608);
    EXPECT_EQ(c.text_hidden_size, 1024) << "out_hidden_size has no meaning";
    EXPECT_EQ(c.grid.patch_dim(), 768) << "there is no temporal patch";
    EXPECT_EQ(c.grid.resize_factor(), 32);
  }
}

TEST(HunyuanVlConfig, SecondNamesCountWhereBothAreThere) {
  const Config c = parse(R"({"num_attention_heads": 16, "attention_heads": 18,
                             "rms_norm_eps": 1e-5, "layer_norm_eps": 1e-3})");
  EXPECT_EQ(c.num_attention_heads, 18);
  EXPECT_EQ(c.rms_norm_eps, 1e-3);
  test::expect_error(ErrorCode::kCorruptData, "7 heads do not divide a width of 1152",
                     [] { (void)parse(R"({"attention_heads": 7})"); });
}

TEST(HunyuanVlConfig, ReadsSizesOfOtherTowers) {
  const Config c = parse(R"({"hidden_size": 144, "num_attention_heads": 2, "head_dim": 72,
                             "patch_size": 14, "max_image_size": 170, "layer_norm_eps": 1e-4,
                             "hidden_act": "silu", "spatial_merge_size": 1})",
                         R"("hidden_size": 8, "text_config": {"hidden_size": 96})");
  EXPECT_EQ(c.position_side(), 12);
  EXPECT_EQ(c.joined_width(), 144);
  EXPECT_EQ(c.wide(), 576) << "four times the width, whatever is merged";
  EXPECT_EQ(c.rms_norm_eps, 1e-4) << "transformers takes either name";
  EXPECT_EQ(c.hidden_act, ops::Activation::kSilu);
  EXPECT_EQ(c.text_hidden_size, 96) << "text_config comes before the top of the file";
}

TEST(HunyuanVlConfig, RefusesWhatTheTowerDoesNotHave) {
  const auto expect_refused = [](ErrorCode code, const std::string& message,
                                 const std::string& vision) {
    test::expect_error(code, message, [&] { (void)parse(vision); });
  };
  expect_refused(ErrorCode::kCorruptData, "max_image_size: 15 pixels hold no patch of 16",
                 R"({"max_image_size": 15})");
  expect_refused(ErrorCode::kCorruptData, "7 heads do not divide a width of 1152",
                 R"({"num_attention_heads": 7})");
  expect_refused(ErrorCode::kUnsupported, "num_channels: only 3 is supported, got 1",
                 R"({"num_channels": 1})");
  expect_refused(ErrorCode::kUnsupported, "temporal_patch_size", R"({"temporal_patch_size": 2})");
  expect_refused(ErrorCode::kUnsupported, "head_dim: only 72 is supported", R"({"head_dim": 64})");
  expect_refused(ErrorCode::kUnsupported, "interpolate_mode: only bilinear is supported",
                 R"({"interpolate_mode": "bicubic"})");
  test::expect_error(ErrorCode::kCorruptData, "hidden_size",
                     [] { (void)parse("{}", R"("vocab_size": 3)"); });
  test::expect_error(ErrorCode::kUnsupported, "hidden_size: expected a multiple of 8, got 1025",
                     [] { (void)parse("{}", R"("hidden_size": 1025)"); });
}

TEST(HunyuanVlConfig, ReadsTheGoldenCheckpoint) {
  const auto folders = test::golden_folders("hunyuan_vl", "config.json");
  if (folders.empty()) GTEST_SKIP() << "no folder hunyuan_vl; set FOVEA_GOLDEN_DIR";
  for (const std::string& folder : folders) {
    const checkpoint::HfConfig files = checkpoint::read_hf_config(folder);
    const JsonView root = files.config.root();
    EXPECT_EQ(parse_config(files).hidden_size, root.at("vision_config").at("hidden_size").as_int());
    EXPECT_EQ(parse_config(files).text_hidden_size,
              root.at("text_config").at("hidden_size").as_int());
  }
}

}  // namespace
}  // namespace fovea::hunyuan_vl
