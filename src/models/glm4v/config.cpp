// config.json of GLM-4.1V and its successors.
#include "models/glm4v/config.h"

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/processor_file.h"

namespace fovea::glm4v {

Config parse_config(const checkpoint::HfConfig& files) {
  const JsonView vision = files.config.root().at("vision_config");
  Config c;
  const auto read = [&](std::string_view key, std::int64_t& field) {
    field = common::read_size(vision, key, field);
  };
  c.depth = common::read_size(vision, "depth", c.depth, common::kMaxDepth);
  read("hidden_size", c.hidden_size);
  read("num_heads", c.num_heads);
  read("image_size", c.image_size);
  read("out_hidden_size", c.out_hidden_size);
  read("intermediate_size", c.intermediate_size);
  c.grid = common::read_grid_geometry(vision, c.grid);
  c.attention_bias = vision.bool_or("attention_bias", c.attention_bias);
  c.rms_norm_eps = common::read_positive(vision, "rms_norm_eps", c.rms_norm_eps);
  c.rope_theta = common::read_rope_theta(vision, c.rope_theta);
  c.hidden_act = common::parse_activation(vision.string_or("hidden_act", "silu"),
                                          vision.path() + ".hidden_act");
  common::check_heads(vision, c.hidden_size, c.num_heads);
  FOVEA_CHECK(c.position_side() >= 1, kCorruptData, vision.path(), ".image_size: ", c.image_size,
              " pixels hold no patch of ", c.grid.patch_size);
  return c;
}

}  // namespace fovea::glm4v
