// config.json of MiniMax-M3.
#include "models/minimax_m3_vl/config.h"

#include "models/common/config_reader.h"
#include "models/common/processor_file.h"

namespace fovea::minimax_m3_vl {

namespace {

/// Patches of a row and frames of a patch, which released files have in an object of their own.
common::GridGeometry read_grid(const JsonView& vision, const Config& c) {
  common::GridGeometry grid = c.grid;
  if (const auto merging = vision.find("img_token_compression_config")) {
    common::require_text(*merging, "image_token_compression_method", "patch_merge");
    grid.spatial_merge_size =
        common::read_size(*merging, "spatial_merge_size", grid.spatial_merge_size);
    common::require_number(*merging, "temporal_patch_size",
                           static_cast<double>(grid.temporal_patch_size));
  }
  return common::read_grid_geometry(vision, grid);
}

/// The one form of rotary positions that the tower has, by the names that files give it.
void check_rope(const JsonView& vision) {
  common::require_text(vision, "position_embedding_type", "rope");
  common::require_text(vision, "rope_mode", "3d");
}

}  // namespace

Config parse_config(const checkpoint::HfConfig& files) {
  const JsonView root = files.config.root();
  const JsonView vision = root.at("vision_config");
  Config c;
  common::require_number(vision, "num_channels", 3);
  common::read_transformer(vision, c);
  c.layer_norm_eps = common::read_positive(vision, "layer_norm_eps", c.layer_norm_eps);
  c.hidden_act = common::parse_activation(vision.string_or("hidden_act", "gelu"),
                                          vision.path() + ".hidden_act");
  c.rope_theta = common::read_rope_theta(vision, c.rope_theta);
  check_rope(vision);
  c.grid = read_grid(vision, c);
  c.vision_segment_max_frames =
      common::read_size(vision, "vision_segment_max_frames", c.vision_segment_max_frames);
  c.projector_hidden_size =
      common::read_size(root, "projector_hidden_size", c.projector_hidden_size);
  common::require_text(root, "projector_hidden_act", "gelu");
  common::require_flag(root, "multimodal_projector_bias", true);
  common::require_number(root, "vision_feature_layer", -1);
  common::require_text(root, "vision_feature_select_strategy", "full");
  c.text_hidden_size = common::as_size(root.at("text_config").at("hidden_size"));
  return c;
}

}  // namespace fovea::minimax_m3_vl
