// config.json of PaddleOCR-VL: defaults of the reference, what is read, what is refused.
#include "models/paddleocr_vl/config.h"

#include <gtest/gtest.h>

#include "models/config_files.h"
#include "support/expect_error.h"
#include "support/golden.h"

namespace fovea::paddleocr_vl {
namespace {

Config parse(const std::string& vision, const std::string& width = R"("hidden_size": 1024)") {
  return parse_config(
      test::config_files({.config = "{\"vision_config\": " + vision + ", " + width + "}"}));
}

TEST(PaddleOcrVlConfig, DefaultsAreThoseOfTheReferenceAndOfPublishedCheckpoints) {
  const std::string published = R"({"hidden_act": "gelu_pytorch_tanh", "hidden_size": 1152,
      "image_size": 384, "intermediate_size": 4304, "layer_norm_eps": 1e-06,
      "num_attention_heads": 16, "num_channels": 3, "num_hidden_layers": 27, "patch_size": 14,
      "spatial_merge_size": 2, "temporal_patch_size": 2})";
  for (const std::string& vision : {std::string("{}"), published}) {
    const Config c = parse(vision);
    EXPECT_EQ(c.num_hidden_layers, 27);
    EXPECT_EQ(c.hidden_size, 1152);
    EXPECT_EQ(c.intermediate_size, 4304);
    EXPECT_EQ(c.head_dim(), 72);
    EXPECT_EQ(c.position_side(), 27);
    EXPECT_EQ(c.layer_norm_eps, 1e-6);
    EXPECT_EQ(c.rope_theta, 10000.0);
    EXPECT_EQ(c.hidden_act, ops::Activation::kGeluTanh);
    EXPECT_EQ(c.joined_width(), 4608);
    EXPECT_EQ(c.text_hidden_size, 1024);
    EXPECT_EQ(c.grid.patch_dim(), 588) << "there is no temporal patch";
    EXPECT_EQ(c.grid.resize_factor(), 28);
  }
}

TEST(PaddleOcrVlConfig, ReadsSizesOfOtherTowers) {
  const Config c = parse(R"({"hidden_size": 144, "num_attention_heads": 2, "patch_size": 16,
                             "image_size": 170, "layer_norm_eps": 1e-5, "hidden_act": "gelu",
                             "spatial_merge_size": 1, "rope_parameters": {"rope_theta": 500}})",
                         R"("hidden_size": 7, "text_config": {"hidden_size": 96})");
  EXPECT_EQ(c.position_side(), 10);
  EXPECT_EQ(c.grid.resize_factor(), 16);
  EXPECT_EQ(c.layer_norm_eps, 1e-5);
  EXPECT_EQ(c.rope_theta, 500);
  EXPECT_EQ(c.hidden_act, ops::Activation::kGeluErf);
  EXPECT_EQ(c.text_hidden_size, 96) << "text_config comes before the top of the file";
}

TEST(PaddleOcrVlConfig, RefusesWhatTheTowerDoesNotHave) {
  const auto expect_refused = [](ErrorCode code, const std::string& message,
                                 const std::string& vision) {
    test::expect_error(code, message, [&] { (void)parse(vision); });
  };
  expect_refused(ErrorCode::kCorruptData, "image_size: 13 pixels hold no patch of 14",
                 R"({"image_size": 13})");
  expect_refused(ErrorCode::kCorruptData, "7 heads do not divide a width of 1152",
                 R"({"num_attention_heads": 7})");
  expect_refused(ErrorCode::kUnsupported, "num_channels: only 3 is supported, got 1",
                 R"({"num_channels": 1})");
  expect_refused(ErrorCode::kUnsupported, "interpolation_mode: only bilinear is supported",
                 R"({"interpolation_mode": "bicubic"})");
  expect_refused(ErrorCode::kUnsupported, "interpolation_align_corners: only false is supported",
                 R"({"interpolation_align_corners": true})");
  test::expect_error(ErrorCode::kCorruptData, "hidden_size",
                     [] { (void)parse("{}", R"("vocab_size": 3)"); });
}

TEST(PaddleOcrVlConfig, ReadsTheGoldenCheckpoint) {
  const auto folders = test::golden_folders("paddleocr_vl", "config.json");
  if (folders.empty()) GTEST_SKIP() << "no folder paddleocr_vl; set FOVEA_GOLDEN_DIR";
  for (const std::string& folder : folders) {
    const checkpoint::HfConfig files = checkpoint::read_hf_config(folder);
    const JsonView vision = files.config.root().at("vision_config");
    EXPECT_EQ(parse_config(files).head_dim(),
              vision.at("hidden_size").as_int() / vision.at("num_attention_heads").as_int());
  }
}

}  // namespace
}  // namespace fovea::paddleocr_vl
