// config.json of Llama 4: defaults of the reference, what is read, what is refused.
#include "models/llama4/config.h"

#include <gtest/gtest.h>

#include "core/check.h"
#include "models/config_files.h"
#include "support/expect_error.h"
#include "support/golden.h"

namespace fovea::llama4 {
namespace {

/// Scout-17B-16E and Maverick-17B-128E.
const std::string kPublished = R"({"model_type": "llama4_vision_model", "hidden_size": 1408,
    "num_hidden_layers": 34, "num_attention_heads": 16, "intermediate_size": 5632,
    "image_size": 336, "patch_size": 14, "num_channels": 3, "hidden_act": "gelu",
    "norm_eps": 1e-05, "pixel_shuffle_ratio": 0.5, "projector_input_dim": 4096,
    "projector_output_dim": 4096, "vision_output_dim": 4096, "multi_modal_projector_bias": false,
    "rope_theta": 10000})";

Config parse(const std::string& vision) {
  return parse_config(test::config_files(
      {.config = "{\"vision_config\": " + vision + ", \"text_config\": {\"hidden_size\": 5120}}"}));
}

/// The published numbers with one of them replaced.
std::string with(const std::string& from, const std::string& to) {
  std::string vision = kPublished;
  return vision.replace(vision.find(from), from.size(), to);
}

TEST(Llama4Config, ReadsThePublishedTower) {
  const Config c = parse(kPublished);
  EXPECT_EQ(c.num_hidden_layers, 34);
  EXPECT_EQ(c.hidden_size, 1408);
  EXPECT_EQ(c.head_dim(), 88);
  EXPECT_EQ(c.view.patches(), 576);
  EXPECT_EQ(c.view.tokens(), 144);
  EXPECT_EQ(c.vision_output_dim, 4096);
  EXPECT_EQ(c.text_hidden_size, 5120);
  EXPECT_EQ(c.rope_theta, 10000.0);
}

TEST(Llama4Config, ReadsRopeThetaInBothSpellings) {
  EXPECT_EQ(parse(with("\"rope_theta\": 10000", "\"rope_theta\": 500")).rope_theta, 500.0);
  EXPECT_EQ(
      parse(with("\"rope_theta\": 10000", "\"rope_parameters\": {\"rope_theta\": 400}")).rope_theta,
      400.0);
}

TEST(Llama4Config, RefusesARopeThetaThatIsNotPositive) {
  for (const char* value : {"0", "-1", "1e-308"}) {
    test::expect_error(
        ErrorCode::kCorruptData, "config.json: vision_config.rope_theta: expected a number above 0",
        [&] { (void)parse(with("\"rope_theta\": 10000", cat("\"rope_theta\": ", value))); });
  }
}

TEST(Llama4Config, RefusesWhatTheTowerDoesNotHave) {
  const auto expect_refused = [](ErrorCode code, const std::string& message,
                                 const std::string& from, const std::string& to) {
    test::expect_error(code, message, [&] { (void)parse(with(from, to)); });
  };
  expect_refused(ErrorCode::kUnsupported, "num_channels: only 3 is supported, got 4",
                 "\"num_channels\": 3", "\"num_channels\": 4");
  expect_refused(ErrorCode::kUnsupported, "pixel_shuffle_ratio: only 0.5 is supported",
                 "\"pixel_shuffle_ratio\": 0.5", "\"pixel_shuffle_ratio\": 1.0");
  expect_refused(ErrorCode::kUnsupported, "multi_modal_projector_bias: only false is supported",
                 "\"multi_modal_projector_bias\": false", "\"multi_modal_projector_bias\": true");
  expect_refused(ErrorCode::kCorruptData, "intermediate_size: expected 5632, got 4096",
                 "\"intermediate_size\": 5632", "\"intermediate_size\": 4096");
  expect_refused(ErrorCode::kCorruptData, "projector_input_dim: expected 4096, got 2048",
                 "\"projector_input_dim\": 4096", "\"projector_input_dim\": 2048");
  expect_refused(ErrorCode::kUnsupported, "image_size: 350 is not a multiple of 28",
                 "\"image_size\": 336", "\"image_size\": 350");
  expect_refused(ErrorCode::kCorruptData, "5 heads do not divide a width of 1408",
                 "\"num_attention_heads\": 16", "\"num_attention_heads\": 5");
}

TEST(Llama4Config, ReadsTheGoldenCheckpoint) {
  for (const std::string& folder : test::golden_folders("llama4", "config.json")) {
    EXPECT_EQ(parse_config(checkpoint::read_hf_config(folder)).view.tokens(), 16);
  }
}

}  // namespace
}  // namespace fovea::llama4
