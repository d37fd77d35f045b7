// config.json of Cohere2-Vision and Aya Vision: what is read, what is refused.
#include "models/cohere_vision/config.h"

#include <gtest/gtest.h>

#include "models/config_files.h"
#include "support/expect_error.h"

namespace fovea::cohere_vision {
namespace {

/// A config.json with a tower of 32 x 32 patches, followed by `more`.
Config parse(Format format, const std::string& more = "") {
  const std::string text = R"({"text_config": {"hidden_size": 4096}, "vision_config": {
      "hidden_size": 1152, "image_size": 512, "intermediate_size": 4304, "num_hidden_layers": 27,
      "num_attention_heads": 16, "patch_size": 16})" +
                           more + "}";
  return parse_config(test::config_files({.config = text}), format);
}

TEST(CohereVisionConfig, ReadsBothFormats) {
  for (const Format format : {Format::kCohere2, Format::kAya}) {
    const Config c = parse(format, R"(, "alignment_intermediate_size": 28672)");
    EXPECT_EQ(c.tower.num_hidden_layers, 27);
    EXPECT_EQ(c.tower.view.tokens(), 256);
    EXPECT_EQ(c.joined_width(), 4608);
    EXPECT_EQ(c.alignment_intermediate_size, 28672);
    EXPECT_EQ(c.text_hidden_size, 4096);
  }
  EXPECT_EQ(parse(Format::kCohere2).alignment_intermediate_size, 36864);
  EXPECT_EQ(parse(Format::kAya).alignment_intermediate_size, 4096) << "the language model's width";
}

TEST(CohereVisionConfig, AyaVisionMayLeaveOutTheLastLayers) {
  constexpr const char* kLayer = R"(, "vision_feature_layer": -3)";
  EXPECT_EQ(parse(Format::kAya, kLayer).tower.num_hidden_layers, 25);
  EXPECT_EQ(parse(Format::kCohere2, kLayer).tower.num_hidden_layers, 27);
}

TEST(CohereVisionConfig, RefusesWhatTheTowerDoesNotHave) {
  const auto expect_refused = [](const std::string& message, const std::string& more) {
    test::expect_error(ErrorCode::kUnsupported, message, [&] { (void)parse(Format::kAya, more); });
  };
  expect_refused("downsample_factor: 3 does not divide a grid of 32x32 patches",
                 R"(, "downsample_factor": 3)");
  expect_refused("alignment_intermediate_size: 7 has no two halves",
                 R"(, "alignment_intermediate_size": 7)");
  expect_refused("vision_feature_layer: expected a number in [-27, -1], got 0",
                 R"(, "vision_feature_layer": 0)");
  expect_refused("vision_feature_select_strategy: only full is supported, got default",
                 R"(, "vision_feature_select_strategy": "default")");
}

}  // namespace
}  // namespace fovea::cohere_vision
