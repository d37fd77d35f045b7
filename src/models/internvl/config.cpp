// config.json of both formats of InternVL.
#include "models/internvl/config.h"

#include <string>

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/processor_file.h"

namespace fovea::internvl {

namespace {

/// The names of the same keys in both formats, and their defaults.
struct Keys {
  std::string_view qkv_bias, qk_normalization, select_layer, projector_act, language_model;
  Config defaults;
};

Keys keys_of(Format format) {
  if (format != Format::kChat) {
    return {.qkv_bias = "attention_bias",
            .qk_normalization = "use_qk_norm",
            .select_layer = "vision_feature_layer",
            .projector_act = "projector_hidden_act",
            .language_model = "text_config",
            .defaults = {.format = format, .qkv_bias = format == Format::kQianfan}};
  }
  // The projector's activation is fixed in the authors' code.
  return {.qkv_bias = "qkv_bias",
          .qk_normalization = "qk_normalization",
          .select_layer = "select_layer",
          .projector_act = "",
          .language_model = "llm_config",
          .defaults = {.format = format,
                       .hidden_size = 3200,
                       .num_hidden_layers = 48,
                       .num_attention_heads = 25,
                       .intermediate_size = 12800,
                       .view = {.side_px = 224, .patch_px = 14, .merge = 2},
                       .qk_normalization = true,
                       .rms_norm = true}};
}

Config read_vision(const JsonView& vision, const Keys& keys) {
  Config c = keys.defaults;
  common::read_transformer(vision, c);
  c.view = common::read_square_view(vision, c.view);
  c.qkv_bias = vision.bool_or(keys.qkv_bias, c.qkv_bias);
  c.qk_normalization = vision.bool_or(keys.qk_normalization, c.qk_normalization);
  const std::string norm = vision.string_or("norm_type", c.rms_norm ? "rms_norm" : "layer_norm");
  c.rms_norm = norm == "rms_norm";
  FOVEA_CHECK(c.rms_norm || norm == "layer_norm", kUnsupported, vision.path(),
              ".norm_type: expected layer_norm or rms_norm, got ", norm);
  c.layer_norm_eps = common::read_positive(vision, "layer_norm_eps", c.layer_norm_eps);
  c.hidden_act = common::parse_activation(vision.string_or("hidden_act", "gelu"),
                                          vision.path() + ".hidden_act");
  common::require_flag(vision, "use_absolute_position_embeddings", true);
  common::require_flag(vision, "use_mean_pooling", true);  // else a norm ends the tower
  return c;
}

}  // namespace

Config parse_config(const checkpoint::HfConfig& files, Format format) {
  const Keys keys = keys_of(format);
  const JsonView root = files.config.root();
  Config c = read_vision(root.at("vision_config"), keys);
  const std::int64_t last = root.int_or(keys.select_layer, -1);  // counts from the end
  FOVEA_CHECK(last <= -1 && last >= -c.num_hidden_layers, kUnsupported, root.path(), ": ",
              keys.select_layer, ": expected a number in [", -c.num_hidden_layers, ", -1], got ",
              last);
  c.num_hidden_layers += last + 1;
  c.projector_act = common::parse_activation(root.string_or(keys.projector_act, "gelu"),
                                             cat(root.path(), ": ", keys.projector_act));
  c.llm_hidden_size = common::as_size(root.at(keys.language_model).at("hidden_size"));
  // Another size would need positions other than those of vision_config.image_size.
  common::require_number(root, "force_image_size", static_cast<double>(c.view.side_px));
  common::require_number(root, "downsample_ratio", 0.5);
  const std::string shuffle = root.string_or("ps_version", format == Format::kChat ? "v1" : "v2");
  FOVEA_CHECK(shuffle == "v2", kUnsupported, root.path(),
              ": ps_version: only v2 is supported, got ", shuffle);
  common::require_text(root, "vision_feature_select_strategy", "default");
  return c;
}

}  // namespace fovea::internvl
