// config.json of LFM2-VL.
#include "models/lfm2_vl/config.h"

#include <cmath>

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/processor_file.h"

namespace fovea::lfm2_vl {

std::int64_t Config::position_side() const {
  return static_cast<std::int64_t>(std::sqrt(static_cast<double>(num_patches)));
}

Config parse_config(const checkpoint::HfConfig& files) {
  constexpr std::int64_t kMaxSide = 4096;
  const JsonView root = files.config.root();
  const JsonView vision = root.at("vision_config");
  Config c;
  common::require_number(vision, "num_channels", 3);
  common::read_transformer(vision, c);
  c.grid.patch_size = common::read_size(vision, "patch_size", c.grid.patch_size, kMaxSide);
  c.grid.spatial_merge_size =
      common::read_size(root, "downsample_factor", c.grid.spatial_merge_size, kMaxSide);
  c.num_patches = common::read_size(vision, "num_patches", c.num_patches);
  FOVEA_CHECK(c.position_side() * c.position_side() == c.num_patches, kUnsupported, vision.path(),
              ".num_patches: ", c.num_patches, " is no square");
  c.layer_norm_eps = common::read_positive(vision, "layer_norm_eps", c.layer_norm_eps);
  c.hidden_act = common::parse_activation(vision.string_or("hidden_act", "gelu_pytorch_tanh"),
                                          vision.path() + ".hidden_act");
  common::require_number(root, "vision_feature_layer", -1);
  c.projector_hidden_act = common::parse_activation(root.string_or("projector_hidden_act", "gelu"),
                                                    root.path() + ": projector_hidden_act");
  c.projector_hidden_size =
      common::read_size(root, "projector_hidden_size", c.projector_hidden_size);
  c.projector_bias = root.bool_or("projector_bias", c.projector_bias);
  c.projector_use_layernorm = root.bool_or("projector_use_layernorm", c.projector_use_layernorm);
  c.text_hidden_size = common::as_size(root.at("text_config").at("hidden_size"));
  return c;
}

}  // namespace fovea::lfm2_vl
