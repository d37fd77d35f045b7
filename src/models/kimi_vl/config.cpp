// config.json of Kimi-VL.
#include "models/kimi_vl/config.h"

#include "models/common/config_reader.h"

namespace fovea::kimi_vl {

Config parse_config(const checkpoint::HfConfig& files) {
  const JsonView root = files.config.root();
  const JsonView vision = root.at("vision_config");
  Config c;
  common::read_transformer(vision, c);
  c.init_pos_emb_height = common::read_size(vision, "init_pos_emb_height", c.init_pos_emb_height);
  c.init_pos_emb_width = common::read_size(vision, "init_pos_emb_width", c.init_pos_emb_width);
  c.grid.spatial_merge_size =
      common::read_square(vision, "merge_kernel_size", c.grid.spatial_merge_size);
  c.grid = common::read_grid_geometry(vision, c.grid);
  c.text_hidden_size = common::as_size(root.at("text_config").at("hidden_size"));
  return c;
}

}  // namespace fovea::kimi_vl
