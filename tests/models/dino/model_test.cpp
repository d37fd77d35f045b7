// DINOv2 and DINOv3: what is read of their files, and their lists of tensors.
#include "models/dino/model.h"

#include <gtest/gtest.h>

#include "models/config_files.h"
#include "models/load_model.h"
#include "support/expect_error.h"

namespace fovea::dino {
namespace {

CheckedModel check(const std::string& config, const std::string& processor = {},
                   TowerOutput output = TowerOutput::kRows) {
  return check_model(test::config_files({.config = config, .preprocessor = processor}), {},
                     checkpoint::WeightSource::dummy(0), output);
}

/// The tensors and parameters of transformers' modules, but the token for masks.
void expect_count(const std::string& config, std::size_t tensors, std::int64_t parameters) {
  const CheckedModel model = check(config);
  EXPECT_EQ(model.report.tensors.size(), tensors);
  EXPECT_EQ(model.report.parameters, parameters);
}

TEST(DinoModel, HasTheTensorsOfThePublishedTowers) {
  expect_count(R"({"architectures": ["Dinov2Model"], "image_size": 518})", 222, 86'579'712);
  // Two layers of each of 40 blocks are stored as one.
  expect_count(R"({"architectures": ["Dinov2Model"], "image_size": 518, "hidden_size": 1536,
      "num_hidden_layers": 40, "num_attention_heads": 24, "use_swiglu_ffn": true})",
               806 - 2 * 40, 1'136'479'232);
  expect_count(R"({"architectures": ["Dinov2WithRegistersModel"], "image_size": 518,
      "hidden_size": 384, "num_attention_heads": 6})",
               223, 21'994'368);
  expect_count(R"({"architectures": ["DINOv3ViTModel"], "num_register_tokens": 4})", 210,
               21'596'160);
  expect_count(R"({"architectures": ["DINOv3ViTModel"], "hidden_size": 1280, "hidden_act": "silu",
      "intermediate_size": 5120, "num_hidden_layers": 32, "num_attention_heads": 20,
      "use_gated_mlp": true, "num_register_tokens": 4})",
               614, 840'591'360);
}

TEST(DinoModel, TheProcessorFileSaysHowLargeAViewIs) {
  const CheckedModel v2 = check(R"({"architectures": ["Dinov2Model"], "image_size": 518})",
                                R"({"size": {"shortest_edge": 256}, "crop_size": 224})");
  EXPECT_EQ(v2.planner->processor().plan_image(640, 480).spec.out_rows, 1 + 16 * 16);
  const CheckedModel v3 =
      check(R"({"architectures": ["DINOv3ViTModel"], "num_register_tokens": 4})",
            R"({"size": {"height": 512, "width": 512},
                                    "image_processor_type": "DINOv3ViTImageProcessorFast"})");
  EXPECT_EQ(v3.planner->processor().plan_image(640, 480).spec.out_rows, 1 + 4 + 32 * 32);
}

TEST(DinoModel, APixelOfDinov3IsThreeBytes) {
  const CheckedModel v3 = check(R"({"architectures": ["DINOv3ViTModel"]})");
  EXPECT_EQ(v3.planner->processor().plan_image(64, 64).pixel_bytes, 3U * 224 * 224 * 3);
  const CheckedModel v2 = check(R"({"architectures": ["Dinov2Model"]})");
  EXPECT_EQ(v2.planner->processor().plan_image(64, 64).pixel_bytes, 224U * 224 * 3);
}

TEST(DinoConfig, ReadsMlpsAndRegisters) {
  const auto parse = [](const std::string& config, Version version) {
    return parse_config(test::config_files({.config = config}), version);
  };
  const Config giant = parse(R"({"architectures": ["Dinov2Model"], "hidden_size": 1536,
      "num_attention_heads": 24, "use_swiglu_ffn": true})",
                             Version::kV2);
  EXPECT_EQ(giant.intermediate_size, 4096);
  EXPECT_EQ(giant.hidden_act, ops::Activation::kSilu);
  EXPECT_EQ(giant.num_register_tokens, 0);
  const Config registers =
      parse(R"({"architectures": ["Dinov2WithRegistersModel"]})", Version::kV2);
  EXPECT_EQ(registers.num_register_tokens, 4);
  EXPECT_EQ(registers.trained.patch_px, 16);
  EXPECT_EQ(registers.position_filter, common::BicubicTable::kAntialiased);
  const Config v3 = parse(R"({"architectures": ["DINOv3ViTModel"]})", Version::kV3);
  EXPECT_EQ(v3.layer_norm_eps, 1e-5);
  EXPECT_FALSE(v3.key_bias);
}

TEST(DinoConfig, RefusesWhatTheTowersDoNotHave) {
  const auto expect_refused = [](ErrorCode code, const std::string& message,
                                 const std::string& config) {
    test::expect_error(code, message, [&] { (void)check(config); });
  };
  expect_refused(ErrorCode::kUnsupported, "qkv_bias",
                 R"({"architectures": ["Dinov2Model"], "qkv_bias": false})");
  expect_refused(ErrorCode::kUnsupported, "mlp_bias",
                 R"({"architectures": ["DINOv3ViTModel"], "mlp_bias": false})");
  expect_refused(ErrorCode::kCorruptData, "num_register_tokens: expected a number in [0, 256]",
                 R"({"architectures": ["DINOv3ViTModel"], "num_register_tokens": -1})");
  expect_refused(ErrorCode::kCorruptData, "mlp_ratio: expected at most 64",
                 R"({"architectures": ["Dinov2Model"], "mlp_ratio": 1e9})");
  expect_refused(ErrorCode::kUnsupported, "an MLP of width 100, which is not a multiple of 8",
                 R"({"architectures": ["DINOv3ViTModel"], "intermediate_size": 100})");
  test::expect_error(ErrorCode::kCorruptData, "hold no patch of 14", [] {
    (void)check(R"({"architectures": ["Dinov2Model"]})", R"({"crop_size": 8})");
  });
}

}  // namespace
}  // namespace fovea::dino
