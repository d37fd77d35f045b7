// config.json of HunyuanOCR.
#include "models/hunyuan_vl/config.h"

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/processor_file.h"

namespace fovea::hunyuan_vl {

namespace {

/// Rows of the projector begin at multiples of 16 bytes, which kernels work on.
std::int64_t read_text_width(const JsonView& root) {
  constexpr std::int64_t kVector = 8;
  const auto text = root.find("text_config");
  const JsonView width = (text ? *text : root).at("hidden_size");
  const std::int64_t value = common::as_size(width);
  FOVEA_CHECK(value % kVector == 0, kUnsupported, width.path(), ": expected a multiple of ",
              kVector, ", got ", value);
  return value;
}

}  // namespace

Config parse_config(const checkpoint::HfConfig& files) {
  const JsonView root = files.config.root();
  const JsonView vision = root.at("vision_config");
  Config c;
  common::require_number(vision, "num_channels", 3);
  common::read_transformer(vision, c);
  // attention_heads and layer_norm_eps are second names, which count where both are there:
  // attribute_map in the reference.
  c.num_attention_heads = common::read_size(vision, "attention_heads", c.num_attention_heads);
  common::check_heads(vision, c.hidden_size, c.num_attention_heads);
  const std::int64_t head_dim = c.hidden_size / c.num_attention_heads;
  common::require_number(vision, "head_dim", static_cast<double>(head_dim));
  c.grid = common::read_grid_geometry(vision, c.grid);
  c.max_image_size = common::read_size(vision, "max_image_size", c.max_image_size);
  FOVEA_CHECK(c.position_side() >= 1, kCorruptData, vision.path(),
              ".max_image_size: ", c.max_image_size, " pixels hold no patch of ",
              c.grid.patch_size);
  common::require_text(vision, "interpolate_mode", "bilinear");
  c.rms_norm_eps = common::read_positive(
      vision, "layer_norm_eps", common::read_positive(vision, "rms_norm_eps", c.rms_norm_eps));
  c.hidden_act = common::parse_activation(vision.string_or("hidden_act", "gelu"),
                                          vision.path() + ".hidden_act");
  c.text_hidden_size = read_text_width(root);
  return c;
}

}  // namespace fovea::hunyuan_vl
