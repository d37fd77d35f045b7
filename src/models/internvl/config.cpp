// config.json of both formats of InternVL.
#include "models/internvl/config.h"

#include <string>

#include "core/check.h"
#include "models/blocks/activation.h"
#include "models/blocks/config_reader.h"
#include "models/blocks/processor_file.h"

namespace fovea::internvl {

namespace {

constexpr std::int64_t kMaxImageSize = 4096;

/// What the formats call the same keys, and what they take for granted.
struct Keys {
  std::string_view qkv_bias, qk_normalization, select_layer, projector_act, language_model;
  std::string_view ps_version;  ///< where config.json does not say it
  Config defaults;
};

Keys keys_of(Format format) {
  if (format == Format::kNative) {
    return {.qkv_bias = "attention_bias",
            .qk_normalization = "use_qk_norm",
            .select_layer = "vision_feature_layer",
            .projector_act = "projector_hidden_act",
            .language_model = "text_config",
            .ps_version = "v2",
            .defaults = {.format = format, .qkv_bias = false}};
  }
  // The projector's activation is fixed in the authors' code.
  return {.qkv_bias = "qkv_bias",
          .qk_normalization = "qk_normalization",
          .select_layer = "select_layer",
          .projector_act = "",
          .language_model = "llm_config",
          .ps_version = "v1",
          .defaults = {.format = format,
                       .hidden_size = 3200,
                       .num_hidden_layers = 48,
                       .num_attention_heads = 25,
                       .intermediate_size = 12800,
                       .image_size = 224,
                       .qkv_bias = false,
                       .qk_normalization = true,
                       .rms_norm = true}};
}

/// A switch whose other value this tower does not have.
void require(const JsonView& object, const char* key, bool expected) {
  FOVEA_CHECK(object.bool_or(key, expected) == expected, kUnsupported, object.path(), ".", key,
              ": only ", expected ? "true" : "false", " is supported");
}

void require(const JsonView& object, const char* key, const std::string& expected,
             std::string_view fallback) {
  const std::string value = object.string_or(key, std::string(fallback));
  FOVEA_CHECK(value == expected, kUnsupported, object.path(), ": ", key, ": only ", expected,
              " is supported, got ", value);
}

bool read_norm_type(const JsonView& vision, bool rms_norm) {
  const std::string type = vision.string_or("norm_type", rms_norm ? "rms_norm" : "layer_norm");
  FOVEA_CHECK(type == "rms_norm" || type == "layer_norm", kUnsupported, vision.path(),
              ".norm_type: expected layer_norm or rms_norm, got ", type);
  return type == "rms_norm";
}

Config read_vision(const JsonView& vision, const Keys& keys) {
  Config c = keys.defaults;
  c.hidden_size = blocks::read_size(vision, "hidden_size", c.hidden_size);
  c.num_hidden_layers =
      blocks::read_size(vision, "num_hidden_layers", c.num_hidden_layers, blocks::kMaxDepth);
  c.num_attention_heads = blocks::read_size(vision, "num_attention_heads", c.num_attention_heads);
  c.intermediate_size = blocks::read_size(vision, "intermediate_size", c.intermediate_size);
  c.image_size = blocks::read_size(vision, "image_size", c.image_size, kMaxImageSize);
  c.patch_size = blocks::read_size(vision, "patch_size", c.patch_size, kMaxImageSize);
  c.qkv_bias = vision.bool_or(keys.qkv_bias, c.qkv_bias);
  c.qk_normalization = vision.bool_or(keys.qk_normalization, c.qk_normalization);
  c.rms_norm = read_norm_type(vision, c.rms_norm);
  c.layer_norm_eps = blocks::read_positive(vision, "layer_norm_eps", c.layer_norm_eps);
  c.hidden_act = blocks::parse_activation(vision.string_or("hidden_act", "gelu"),
                                          vision.path() + ".hidden_act");
  blocks::check_heads(vision, c.hidden_size, c.num_attention_heads);
  FOVEA_CHECK(c.image_size % (c.patch_size * Config::kMerge) == 0, kUnsupported, vision.path(),
              ".image_size: ", c.image_size, " is not a multiple of ",
              c.patch_size * Config::kMerge, " (tokens of ", Config::kMerge, "x", Config::kMerge,
              " patches)");
  const std::int64_t channels = blocks::read_size(vision, "num_channels", 3);
  FOVEA_CHECK(channels == 3, kUnsupported, vision.path(),
              ".num_channels: only 3 is supported, got ", channels);
  require(vision, "use_absolute_position_embeddings", true);
  require(vision, "use_mean_pooling", true);  // else there is a norm after the last layer
  return c;
}

/// Layers that run for an index that counts from the last: -1 are all.
std::int64_t layers_up_to(const JsonView& root, std::string_view key, std::int64_t layers) {
  const std::int64_t index = root.int_or(key, -1);
  FOVEA_CHECK(index <= -1 && index >= -layers, kUnsupported, root.path(), ": ", key,
              ": expected a number in [", -layers, ", -1], got ", index);
  return layers + index + 1;
}

}  // namespace

Config parse_config(const checkpoint::HfConfig& files, Format format) {
  const Keys keys = keys_of(format);
  const JsonView root = files.config.root();
  Config c = read_vision(root.at("vision_config"), keys);
  c.num_hidden_layers = layers_up_to(root, keys.select_layer, c.num_hidden_layers);
  c.projector_act = blocks::parse_activation(root.string_or(keys.projector_act, "gelu"),
                                             cat(root.path(), ": ", keys.projector_act));
  c.llm_hidden_size = blocks::as_size(root.at(keys.language_model).at("hidden_size"));
  const std::int64_t forced = blocks::read_size(root, "force_image_size", c.image_size);
  FOVEA_CHECK(forced == c.image_size, kUnsupported, root.path(), ": force_image_size: ", forced,
              " would need positions other than those of vision_config.image_size, ", c.image_size);
  const double ratio = root.number_or("downsample_ratio", 1.0 / Config::kMerge);
  FOVEA_CHECK(ratio == 1.0 / Config::kMerge, kUnsupported, root.path(),
              ": downsample_ratio: only 0.5 is supported, got ", ratio);
  require(root, "ps_version", "v2", keys.ps_version);
  require(root, "vision_feature_select_strategy", "default", "default");
  return c;
}

}  // namespace fovea::internvl
