// config.json of SigLIP 2 NaFlex.
#include "models/siglip2/config.h"

#include <cmath>

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/processor_file.h"

namespace fovea::siglip2 {

std::int64_t Config::position_side() const {
  return static_cast<std::int64_t>(std::sqrt(static_cast<double>(num_patches)));
}

Config parse_config(const checkpoint::HfConfig& files) {
  constexpr std::int64_t kMaxSide = 4096;
  const JsonView root = files.config.root();
  const JsonView vision = root.find("vision_config").value_or(root);
  Config c;
  common::require_text(vision, "model_type", "siglip2_vision_model");
  common::require_number(vision, "num_channels", 3);
  common::read_transformer(vision, c.blocks);
  c.blocks.layer_norm_eps =
      common::read_positive(vision, "layer_norm_eps", c.blocks.layer_norm_eps);
  c.blocks.hidden_act = common::parse_activation(
      vision.string_or("hidden_act", "gelu_pytorch_tanh"), vision.path() + ".hidden_act");
  c.grid.patch_size = common::read_size(vision, "patch_size", c.grid.patch_size, kMaxSide);
  c.num_patches = common::read_size(vision, "num_patches", c.num_patches);
  FOVEA_CHECK(c.position_side() * c.position_side() == c.num_patches, kUnsupported, vision.path(),
              ".num_patches: ", c.num_patches, " is no square");
  c.vision_use_head = vision.bool_or("vision_use_head", c.vision_use_head);
  return c;
}

}  // namespace fovea::siglip2
