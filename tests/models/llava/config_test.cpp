// config.json of LLaVA 1.5, LLaVA-NeXT and LLaVA-OneVision: what is read, what is refused.
#include "models/llava/config.h"

#include <gtest/gtest.h>

#include "models/config_files.h"
#include "support/expect_error.h"

namespace fovea::llava {
namespace {

constexpr const char* kClip = R"({"hidden_size": 1024, "image_size": 336,
    "intermediate_size": 4096, "model_type": "clip_vision_model", "num_attention_heads": 16,
    "num_hidden_layers": 24, "patch_size": 14})";
constexpr const char* kSiglip = R"({"hidden_size": 1152, "image_size": 384,
    "intermediate_size": 4304, "model_type": "siglip_vision_model", "num_attention_heads": 16,
    "num_hidden_layers": 26, "patch_size": 14})";

/// @param root further keys of config.json, each followed by a comma.
Config parse(Format format, const std::string& vision, const std::string& root = "",
             const std::string& text = R"({"model_type": "llama"})") {
  return parse_config(test::config_files({.config = "{" + root + "\"vision_config\": " + vision +
                                                    ", \"text_config\": " + text + "}"}),
                      format);
}

TEST(LlavaConfig, ReadsThePublishedTowers) {
  for (const Format format : {Format::kLlava, Format::kNext}) {
    const Config c = parse(format, kClip);
    EXPECT_EQ(c.kind, Tower::kClip);
    EXPECT_EQ(c.tower.num_hidden_layers, 23) << "the last one does not run";
    EXPECT_EQ(c.tower.view.patches(), 576);
    EXPECT_EQ(c.tower.layer_norm_eps, 1e-5);
    EXPECT_EQ(c.tower.hidden_act, ops::Activation::kQuickGelu);
    EXPECT_EQ(c.projector_hidden_act, ops::Activation::kGeluErf);
    EXPECT_TRUE(c.multimodal_projector_bias);
    EXPECT_EQ(c.max_canvas_views, 0);
    EXPECT_EQ(c.text_hidden_size, 4096);
  }
  const Config c = parse(Format::kOnevision, kSiglip);
  EXPECT_EQ(c.kind, Tower::kSiglip);
  EXPECT_EQ(c.tower.num_hidden_layers, 26);
  EXPECT_EQ(c.tower.view.patches(), 729) << "384 is no multiple of 14";
  EXPECT_EQ(c.max_canvas_views, 9);
}

TEST(LlavaConfig, ReadsWhichLayerCounts) {
  const auto layers = [](const char* layer) {
    return parse(Format::kLlava, kClip, std::string("\"vision_feature_layer\": ") + layer + ", ")
        .tower.num_hidden_layers;
  };
  EXPECT_EQ(layers("-1"), 24);
  EXPECT_EQ(layers("-24"), 1);
  EXPECT_EQ(layers("3"), 3);
  EXPECT_EQ(layers("[-2]"), 23);
}

TEST(LlavaConfig, ReadsOtherProjectorsAndWidths) {
  const Config c = parse(Format::kOnevision, kSiglip,
                         R"("multimodal_projector_bias": false, "projector_hidden_act": "silu",
                            "vision_aspect_ratio": "anyres_max_16", )",
                         R"({"model_type": "other", "hidden_size": 896})");
  EXPECT_FALSE(c.multimodal_projector_bias);
  EXPECT_EQ(c.projector_hidden_act, ops::Activation::kSilu);
  EXPECT_EQ(c.max_canvas_views, 16);
  EXPECT_EQ(c.text_hidden_size, 896);
}

TEST(LlavaConfig, RefusesWhatTheTowersDoNotHave) {
  const auto expect_refused = [](ErrorCode code, const std::string& message, Format format,
                                 const std::string& vision, const std::string& root = "",
                                 const std::string& text = "{}") {
    test::expect_error(code, message, [&] { (void)parse(format, vision, root, text); });
  };
  constexpr auto kUnsupported = ErrorCode::kUnsupported;
  expect_refused(kUnsupported, "model_type: expected clip_vision_model or siglip_vision_model",
                 Format::kNext, R"({"model_type": "pixtral"})");
  expect_refused(kUnsupported, "vision_feature_layer: only one layer is supported, got a list of 2",
                 Format::kLlava, kClip, "\"vision_feature_layer\": [-2, -5], ");
  for (const char* layer : {"0", "-25", "25"}) {
    expect_refused(kUnsupported, "expected a number in [-24, -1] or [1, 24], got ", Format::kLlava,
                   kClip, std::string("\"vision_feature_layer\": ") + layer + ", ");
  }
  expect_refused(kUnsupported, "of this tower only default is supported, got full", Format::kLlava,
                 kClip, "\"vision_feature_select_strategy\": \"full\", ");
  expect_refused(kUnsupported, "of this tower only full is supported, got default", Format::kLlava,
                 kSiglip);
  for (const char* ratio : {"anyres", "anyres_max_", "anyres_max_0", "anyres_max_12345", "pad"}) {
    expect_refused(kUnsupported, "vision_aspect_ratio: expected anyres_max_N", Format::kOnevision,
                   kSiglip, std::string("\"vision_aspect_ratio\": \"") + ratio + "\", ");
  }
  expect_refused(ErrorCode::kCorruptData, "hidden_size", Format::kLlava, kClip, "",
                 R"({"model_type": "gemma"})");
  expect_refused(ErrorCode::kCorruptData, "image_size: 14 pixels hold no patch of 28",
                 Format::kLlava, R"({"image_size": 14, "patch_size": 28})");
}

}  // namespace
}  // namespace fovea::llava
