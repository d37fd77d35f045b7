// config.json of ERNIE-4.5-VL.
#include "models/ernie4_5_vl/config.h"

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/processor_file.h"

namespace fovea::ernie4_5_vl {

namespace {

/// Published files have the width of the MLP as a multiple of that of the tower.
std::int64_t read_mlp_width(const JsonView& vision, std::int64_t width) {
  const double ratio = vision.number_or("mlp_ratio", 4);
  const auto wide = static_cast<std::int64_t>(static_cast<double>(width) * ratio);
  FOVEA_CHECK(ratio > 0 && ratio <= 64 && wide >= 1, kCorruptData, vision.path(),
              ".mlp_ratio: expected a number in (0, 64], got ", ratio);
  return common::read_size(vision, "intermediate_size", wide);
}

/// Requires the resampler that the tower has.
void check_resampler(const JsonView& root, const JsonView& vision, const Config& c) {
  common::require_number(vision, "temporal_merge_size",
                         static_cast<double>(c.grid.temporal_patch_size));
  common::require_number(root, "temporal_conv_size",
                         static_cast<double>(c.grid.temporal_patch_size));
  common::require_number(root, "spatial_conv_size", static_cast<double>(c.grid.spatial_merge_size));
  common::require_number(root, "pixel_hidden_size", static_cast<double>(c.hidden_size));
  common::require_flag(root, "use_temporal_conv", true);
}

}  // namespace

Config parse_config(const checkpoint::HfConfig& files) {
  const JsonView root = files.config.root();
  const JsonView vision = root.at("vision_config");
  Config c;
  common::read_depth_and_heads(vision, c);
  c.hidden_size = common::read_size(vision, "hidden_size", c.hidden_size);
  c.hidden_size = common::read_size(vision, "embed_dim", c.hidden_size);
  common::check_heads(vision, c.hidden_size, c.num_heads);
  c.intermediate_size = read_mlp_width(vision, c.hidden_size);
  c.rms_norm_eps = common::read_positive(vision, "rms_norm_eps", c.rms_norm_eps);
  c.rope_theta = common::read_rope_theta(vision, c.rope_theta);
  c.hidden_act = common::parse_activation(vision.string_or("hidden_act", "quick_gelu"),
                                          vision.path() + ".hidden_act");
  c.grid = common::read_grid_geometry(vision, c.grid);
  check_resampler(root, vision, c);
  const auto text = root.find("text_config");
  const JsonView& language = text ? *text : root;
  c.text_hidden_size = common::read_size(language, "hidden_size", c.text_hidden_size);
  c.text_rms_norm_eps = common::read_positive(language, "rms_norm_eps", c.text_rms_norm_eps);
  return c;
}

}  // namespace fovea::ernie4_5_vl
