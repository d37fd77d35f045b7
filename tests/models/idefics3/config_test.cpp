// config.json of Idefics3 and SmolVLM: defaults of the reference, what is read, what is refused.
#include "models/idefics3/config.h"

#include <gtest/gtest.h>

#include "models/config_files.h"
#include "support/expect_error.h"

namespace fovea::idefics3 {
namespace {

/// @param root further keys of config.json, each followed by a comma.
Config parse(const std::string& vision, const std::string& root = "",
             const std::string& preprocessor = "") {
  return parse_config(
      test::config_files({.config = "{" + root +
                                    R"("text_config": {"hidden_size": 576}, "vision_config": )" +
                                    vision + "}",
                          .preprocessor = preprocessor}),
      Format::kIdefics3);
}

constexpr const char* kBase = R"({"hidden_size": 768, "image_size": 512, "intermediate_size": 3072,
    "model_type": "idefics3", "num_attention_heads": 12, "num_hidden_layers": 12,
    "patch_size": 16})";

TEST(Idefics3Config, DefaultsAreThoseOfTheReference) {
  const Config c = parse("{}", "\"scale_factor\": 1, ");
  EXPECT_EQ(c.tower.hidden_size, 1152);
  EXPECT_EQ(c.tower.num_hidden_layers, 12);
  EXPECT_EQ(c.tower.num_attention_heads, 16);
  EXPECT_EQ(c.tower.intermediate_size, 3072);
  EXPECT_EQ(c.tower.layer_norm_eps, 1e-6);
  EXPECT_EQ(c.tower.hidden_act, ops::Activation::kGeluTanh);
  EXPECT_EQ(c.tower.view.side_px, 224) << "without a processor file";
  EXPECT_EQ(c.tower.view.patch_px, 32);
  EXPECT_EQ(c.position_side, 7);
  EXPECT_EQ(c.text_hidden_size, 576);
}

TEST(Idefics3Config, ReadsThePublishedTowers) {
  const Config small = parse(kBase, "\"scale_factor\": 4, ");
  EXPECT_EQ(small.tower.view.tokens(), 64);
  EXPECT_EQ(small.joined_width(), 16 * 768);
  // 384 is no multiple of 14.
  const Config large = parse(R"({"image_size": 384, "patch_size": 14})", "\"scale_factor\": 3, ");
  EXPECT_EQ(large.tower.view.grid(), 27);
  EXPECT_EQ(large.tower.view.tokens(), 81);
  EXPECT_EQ(large.position_side, 27);
}

TEST(Idefics3Config, TheProcessorFileSaysTheSideOfAView) {
  const Config c = parse(kBase, "", R"({"max_image_size": {"longest_edge": 256}})");
  EXPECT_EQ(c.tower.view.grid(), 16);
  EXPECT_EQ(c.position_side, 32);
  EXPECT_EQ(parse(kBase, "", "{}").tower.view.side_px, 364) << "of the reference's class";
}

TEST(Idefics3Config, RefusesWhatTheTowerDoesNotHave) {
  const auto expect_refused = [](ErrorCode code, const std::string& message,
                                 const std::string& vision, const std::string& root = "",
                                 const std::string& file = "") {
    test::expect_error(code, message, [&] { (void)parse(vision, root, file); });
  };
  expect_refused(ErrorCode::kUnsupported, "model_type: expected idefics3, idefics3_vision, smolvlm",
                 R"({"model_type": "siglip_vision_model"})");
  expect_refused(ErrorCode::kUnsupported, "num_channels: only 3 is supported, got 1",
                 R"({"num_channels": 1})");
  expect_refused(ErrorCode::kUnsupported, "scale_factor: 3 does not divide a grid of 32x32", kBase,
                 "\"scale_factor\": 3, ");
  expect_refused(ErrorCode::kCorruptData, "patch_size: expected a number in [1, 128], got 256",
                 R"({"image_size": 128, "patch_size": 256})");
  expect_refused(ErrorCode::kCorruptData, "longest_edge: expected a number in [1, 4096], got 5000",
                 kBase, "", R"({"max_image_size": {"longest_edge": 5000}})");
}

}  // namespace
}  // namespace fovea::idefics3
