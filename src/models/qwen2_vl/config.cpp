// config.json of Qwen2-VL.
#include "models/qwen2_vl/config.h"

#include "core/check.h"
#include "models/common/config_reader.h"

namespace fovea::qwen2_vl {

Config parse_config(const checkpoint::HfConfig& files) {
  const JsonView vision = common::vision_config(files.config.root());
  Config c;
  common::read_depth_and_heads(vision, c);
  c.embed_dim = common::read_size(vision, "embed_dim", c.embed_dim);
  c.hidden_size = common::read_size(vision, "hidden_size", c.hidden_size);
  c.mlp_ratio = vision.number_or("mlp_ratio", c.mlp_ratio);
  FOVEA_CHECK(c.mlp_ratio > 0 && c.mlp_ratio <= 64 && c.mlp_width() >= 1, kCorruptData,
              vision.path(), ".mlp_ratio: expected a number in (0, 64], got ", c.mlp_ratio);
  c.grid = common::read_grid_geometry(vision, c.grid);
  c.rope_theta = common::read_rope_theta(vision, c.rope_theta);
  c.hidden_act = common::parse_activation(vision.string_or("hidden_act", "quick_gelu"),
                                          vision.path() + ".hidden_act");
  common::check_heads(vision, c.embed_dim, c.num_heads);
  return c;
}

}  // namespace fovea::qwen2_vl
