// config.json of Molmo2, whose older spelling has vit_config for vision_config.
#include "models/molmo2/config.h"

#include <algorithm>
#include <optional>
#include <string>

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/processor_file.h"

namespace fovea::molmo2 {

namespace {

constexpr std::size_t kMaxFeatureLayers = 8;

/// Reads a key that has an older spelling.
std::int64_t read_renamed(const JsonView& object, const char* key, const char* before,
                          std::int64_t fallback) {
  return common::read_size(object, key, common::read_size(object, before, fallback, 1 << 14),
                           1 << 14);
}

/// A square whose sides are given as a list of two equal numbers.
std::int64_t read_side(const JsonView& vision, std::int64_t fallback) {
  return read_renamed(vision, "image_size", "image_default_input_size", fallback);
}

/// Heads of keys and values are as many as those of queries, and fill the width.
void check_attention(const JsonView& object, std::int64_t width, std::int64_t heads) {
  common::check_heads(object, width, heads);
  common::require_number(object, "num_key_value_heads", static_cast<double>(heads));
  common::require_number(object, "head_dim", static_cast<double>(width / heads));
}

void read_vision(const JsonView& vision, Config& c) {
  c.hidden_size = common::read_size(vision, "hidden_size", c.hidden_size);
  c.intermediate_size = common::read_size(vision, "intermediate_size", c.intermediate_size);
  c.num_hidden_layers =
      common::read_size(vision, "num_hidden_layers", c.num_hidden_layers, common::kMaxDepth);
  c.num_attention_heads = common::read_size(vision, "num_attention_heads", c.num_attention_heads);
  check_attention(vision, c.hidden_size, c.num_attention_heads);
  c.layer_norm_eps = common::read_positive(vision, "layer_norm_eps", c.layer_norm_eps);
  c.attention_bias = vision.bool_or("attention_bias", c.attention_bias);
  c.hidden_act = common::parse_activation(vision.string_or("hidden_act", "gelu_pytorch_tanh"),
                                          vision.path() + ".hidden_act");
  common::require_number(vision, "num_channels", 3);
  c.view.patch_px = read_renamed(vision, "patch_size", "image_patch_size", c.view.patch_px);
  c.view.side_px = read_side(vision, c.view.side_px);
  FOVEA_CHECK(c.view.side_px % c.view.patch_px == 0, kUnsupported, vision.path(), ": images of ",
              c.view.side_px, " pixels a side are no whole patches of ", c.view.patch_px);
  const double positions = static_cast<double>(c.view.patches());
  common::require_number(vision, "num_position_embeddings", positions);
  common::require_number(vision, "image_num_pos", positions);
}

/// Blocks that the adapter reads, counted from the end of the declared ones if below 0.
std::vector<std::int64_t> read_layers(const JsonView& list, std::int64_t declared) {
  std::vector<std::int64_t> layers;
  for (const JsonView& element : list.elements()) {
    const std::int64_t layer = element.as_int();
    FOVEA_CHECK(layer >= -declared && layer < declared, kCorruptData, element.path(),
                ": expected a number in [", -declared, ", ", declared - 1, "], got ", layer);
    layers.push_back(layer < 0 ? layer + declared : layer);
    FOVEA_CHECK(std::ranges::count(layers, layers.back()) == 1, kUnsupported, list.path(),
                ": block ", layers.back(), " occurs twice");
  }
  FOVEA_CHECK(!layers.empty() && layers.size() <= kMaxFeatureLayers, kCorruptData, list.path(),
              ": expected 1 to ", kMaxFeatureLayers, " numbers, got ", layers.size());
  return layers;
}

void read_adapter(const JsonView& adapter, Config& c) {
  auto layers = adapter.find("vision_feature_layer");
  if (!layers) layers = adapter.find("vit_layers");
  if (layers) c.vit_layers = read_layers(*layers, c.num_hidden_layers);
  common::require_number(adapter, "hidden_size", static_cast<double>(c.hidden_size));
  c.adapter_heads = common::read_size(adapter, "num_attention_heads", c.adapter_heads);
  check_attention(adapter, c.hidden_size, c.adapter_heads);
  c.adapter_attention_bias = adapter.bool_or("attention_bias", c.adapter_attention_bias);
  c.adapter_hidden_act = common::parse_activation(adapter.string_or("hidden_act", "silu"),
                                                  adapter.path() + ".hidden_act");
  c.adapter_intermediate_size =
      common::read_size(adapter, "intermediate_size", c.adapter_intermediate_size);
  FOVEA_CHECK(c.adapter_intermediate_size % 8 == 0, kUnsupported, adapter.path(),
              ".intermediate_size: ", c.adapter_intermediate_size, " is not a multiple of 8");
  c.text_hidden_size = common::read_size(adapter, "text_hidden_size", c.text_hidden_size);
  common::require_flag(adapter, "mlp_bias", false);
  common::require_flag(adapter, "pooling_attention_mask", true);
}

}  // namespace

Config parse_config(const checkpoint::HfConfig& files) {
  const JsonView root = files.config.root();
  const auto vision = root.find("vision_config");
  Config c;
  read_vision(vision ? *vision : root.at("vit_config"), c);
  read_adapter(root.at("adapter_config"), c);
  const std::int64_t last = *std::ranges::max_element(c.vit_layers);
  FOVEA_CHECK(last < c.num_hidden_layers, kCorruptData, root.path(), ": block ", last,
              " of the adapter is beyond the ", c.num_hidden_layers, " of the tower");
  c.num_hidden_layers = last + 1;
  return c;
}

}  // namespace fovea::molmo2
