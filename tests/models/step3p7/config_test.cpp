// config.json of Step-3.7: defaults of the reference, what is read, what is refused.
#include "models/step3p7/config.h"

#include <gtest/gtest.h>

#include "models/config_files.h"
#include "support/expect_error.h"
#include "support/golden.h"

namespace fovea::step3p7 {
namespace {

Config parse(const std::string& vision, const std::string& root = {}) {
  return parse_config(test::config_files({.config = "{\"vision_config\": " + vision + root + "}"}));
}

TEST(Step3p7Config, HasTheKeysOfPublishedFilesOrThoseOfTransformers) {
  const std::string published = R"({"model_type": "perception_encoder", "image_size": 728,
      "patch_size": 14, "width": 1536, "layers": 47, "heads": 16, "output_dim": null,
      "use_cls_token": false, "ls_init_value": 0.1, "use_ln_post": false,
      "hidden_act": "quick_gelu", "pool_type": "none"})";
  const std::string native = R"({"hidden_size": 1536, "num_hidden_layers": 47,
      "num_attention_heads": 16, "layer_scale_init_value": 0.1, "layer_norm_eps": 1e-05,
      "rope_parameters": {"rope_theta": 10000.0, "rope_type": "axial"}})";
  for (const std::string& vision : {std::string("{}"), published, native}) {
    const Config c = parse(vision);
    EXPECT_EQ(c.width, 1536);
    EXPECT_EQ(c.layers, 47);
    EXPECT_EQ(c.head_dim(), 96);
    EXPECT_EQ(c.mlp_width(), 8960);
    EXPECT_EQ(c.view.tokens(), 169);
    EXPECT_TRUE(c.has_layer_scales);
    EXPECT_EQ(c.text_hidden_size, 4096);
  }
  const Config small = parse(R"({"width": 96, "heads": 2, "image_size": 168, "mlp_ratio": 1.5,
                                 "ls_init_value": null})",
                             R"(, "text_config": {"hidden_size": 64}, "projector_bias": true)");
  EXPECT_EQ(small.mlp_width(), 144);
  EXPECT_EQ(small.view.tokens(), 9);
  EXPECT_FALSE(small.has_layer_scales);
  EXPECT_EQ(small.text_hidden_size, 64);
  EXPECT_TRUE(small.projector_bias);
}

TEST(Step3p7Config, RefusesWhatTheTowerDoesNotHave) {
  const auto expect_refused = [](ErrorCode code, const std::string& message,
                                 const std::string& vision) {
    test::expect_error(code, message, [&] { (void)parse(vision); });
  };
  expect_refused(ErrorCode::kUnsupported, "use_cls_token", R"({"use_cls_token": true})");
  expect_refused(ErrorCode::kUnsupported, "use_ln_pre", R"({"use_ln_pre": false})");
  expect_refused(ErrorCode::kUnsupported, "use_ln_post", R"({"use_ln_post": true})");
  expect_refused(ErrorCode::kUnsupported, "use_abs_posemb", R"({"use_abs_posemb": false})");
  expect_refused(ErrorCode::kUnsupported, "use_rope2d", R"({"use_rope2d": false})");
  expect_refused(ErrorCode::kUnsupported, "output_dim: only null", R"({"output_dim": 1280})");
  expect_refused(ErrorCode::kUnsupported, "image_size: 700 is not a multiple of 56",
                 R"({"image_size": 700})");
  expect_refused(ErrorCode::kCorruptData, "mlp_ratio", R"({"mlp_ratio": -1})");
  expect_refused(ErrorCode::kCorruptData, "7 heads do not divide a width of 1536",
                 R"({"heads": 7})");
  test::expect_error(ErrorCode::kUnsupported, "understand_projector_stride",
                     [] { (void)parse("{}", R"(, "understand_projector_stride": 1)"); });
}

TEST(Step3p7Config, ReadsTheGoldenCheckpoint) {
  for (const std::string& folder : test::golden_folders("step3p7", "config.json")) {
    EXPECT_EQ(parse_config(checkpoint::read_hf_config(folder)).text_hidden_size, 64);
  }
}

}  // namespace
}  // namespace fovea::step3p7
