// config.json of ERNIE-4.5-VL: defaults of the reference, what is read, what is refused.
#include "models/ernie4_5_vl/config.h"

#include <gtest/gtest.h>

#include "models/config_files.h"
#include "support/expect_error.h"
#include "support/golden.h"

namespace fovea::ernie4_5_vl {
namespace {

Config parse(const std::string& vision, const std::string& root = {}) {
  return parse_config(test::config_files({.config = "{\"vision_config\": " + vision + root + "}"}));
}

TEST(Ernie4_5VlConfig, HasTheKeysOfPublishedFilesOrThoseOfTransformers) {
  const Config published = parse(R"({"model_type": "DFNRope_vision_transformer", "depth": 32,
      "embed_dim": 1280, "hidden_act": "quick_gelu", "hidden_size": 1280, "in_channels": 3,
      "in_chans": 3, "mlp_ratio": 4, "num_heads": 16, "patch_size": 14, "spatial_merge_size": 2,
      "spatial_patch_size": 14})",
                                 R"(, "hidden_size": 2560, "rms_norm_eps": 1e-05,
      "pixel_hidden_size": 1280, "spatial_conv_size": 2, "temporal_conv_size": 2,
      "use_temporal_conv": true)");
  const Config native = parse(R"({"depth": 32, "hidden_size": 1280, "intermediate_size": 5120,
      "num_heads": 16, "rms_norm_eps": 1e-06, "temporal_merge_size": 2,
      "rope_parameters": {"rope_theta": 10000.0, "rope_type": "axial"}})",
                              R"(, "text_config": {"hidden_size": 2560, "rms_norm_eps": 1e-05})");
  for (const Config& c : {parse("{}"), published, native}) {
    EXPECT_EQ(c.depth, 32);
    EXPECT_EQ(c.head_dim(), 80);
    EXPECT_EQ(c.intermediate_size, 5120);
    EXPECT_EQ(c.joined_width(), 5120);
    EXPECT_EQ(c.text_hidden_size, 2560);
    EXPECT_EQ(c.text_rms_norm_eps, 1e-5);
    EXPECT_EQ(c.grid.patch_dim(), 588) << "every frame has patches of its own";
  }
}

TEST(Ernie4_5VlConfig, TakesSecondNamesOfDepthAndHeads) {
  const Config c = parse(R"({"num_hidden_layers": 26, "num_attention_heads": 8})");
  EXPECT_EQ(c.depth, 26);
  EXPECT_EQ(c.num_heads, 8);
}

TEST(Ernie4_5VlConfig, RefusesWhatTheTowerDoesNotHave) {
  const auto expect_refused = [](ErrorCode code, const std::string& message,
                                 const std::string& vision, const std::string& root = {}) {
    test::expect_error(code, message, [&] { (void)parse(vision, root); });
  };
  expect_refused(ErrorCode::kUnsupported, "temporal_merge_size", R"({"temporal_merge_size": 3})");
  expect_refused(ErrorCode::kUnsupported, "rope_type: axial and default are supported, got yarn",
                 R"({"rope_parameters": {"rope_type": "yarn"}})");
  expect_refused(ErrorCode::kCorruptData, "mlp_ratio", R"({"mlp_ratio": 0})");
  expect_refused(ErrorCode::kCorruptData, "7 heads do not divide", R"({"num_heads": 7})");
  expect_refused(ErrorCode::kUnsupported, "temporal_conv_size", "{}",
                 R"(, "temporal_conv_size": 1)");
  expect_refused(ErrorCode::kUnsupported, "spatial_conv_size", "{}", R"(, "spatial_conv_size": 3)");
  expect_refused(ErrorCode::kUnsupported, "use_temporal_conv", "{}",
                 R"(, "use_temporal_conv": false)");
}

TEST(Ernie4_5VlConfig, ReadsTheGoldenCheckpoint) {
  for (const std::string& folder : test::golden_folders("ernie4_5_vl", "config.json")) {
    EXPECT_EQ(parse_config(checkpoint::read_hf_config(folder)).text_hidden_size, 64);
  }
}

}  // namespace
}  // namespace fovea::ernie4_5_vl
