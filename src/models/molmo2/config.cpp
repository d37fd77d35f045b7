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

/// Reads a size that has an older spelling.
std::int64_t read_renamed(const JsonView& object, const char* key, const char* before,
                          std::int64_t fallback) {
  const auto value = common::find_renamed(object, key, before);
  return value ? common::as_size(*value, 1 << 14) : fallback;
}

/// Heads of keys and values are as many as those of queries, and fill the width.
void check_attention(const JsonView& object, std::int64_t width, std::int64_t heads) {
  common::check_heads(object, width, heads);
  common::require_number(object, "num_key_value_heads", static_cast<double>(heads));
  common::require_number(object, "head_dim", static_cast<double>(width / heads));
}

void read_vision(const JsonView& vision, Config& c) {
  c.tower = common::read_siglip_layers(vision, c.tower);
  check_attention(vision, c.tower.hidden_size, c.tower.num_attention_heads);
  c.attention_bias = vision.bool_or("attention_bias", c.attention_bias);
  common::require_number(vision, "num_channels", 3);
  common::SquareView& view = c.tower.view;
  view.patch_px = read_renamed(vision, "patch_size", "image_patch_size", view.patch_px);
  view.side_px = read_renamed(vision, "image_size", "image_default_input_size", view.side_px);
  FOVEA_CHECK(view.side_px % view.patch_px == 0, kUnsupported, vision.path(), ": images of ",
              view.side_px, " pixels a side are no whole patches of ", view.patch_px);
  const auto positions = static_cast<double>(view.patches());
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
  const auto layers = common::find_renamed(adapter, "vision_feature_layer", "vit_layers");
  if (layers) c.vit_layers = read_layers(*layers, c.tower.num_hidden_layers);
  common::require_number(adapter, "hidden_size", static_cast<double>(c.tower.hidden_size));
  c.adapter_heads = common::read_size(adapter, "num_attention_heads", c.adapter_heads);
  check_attention(adapter, c.tower.hidden_size, c.adapter_heads);
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
  FOVEA_CHECK(last < c.tower.num_hidden_layers, kCorruptData, root.path(), ": block ", last,
              " of the adapter is beyond the ", c.tower.num_hidden_layers, " of the tower");
  c.tower.num_hidden_layers = last + 1;
  return c;
}

}  // namespace fovea::molmo2
