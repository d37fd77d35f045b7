// config.json of Kimi-VL.
#include "models/kimi_vl/config.h"

#include <vector>

#include "core/check.h"
#include "models/common/config_reader.h"

namespace fovea::kimi_vl {

std::int64_t read_square(const JsonView& object, std::string_view key, std::int64_t fallback) {
  const auto list = object.find(key);
  if (!list) return fallback;
  const std::vector<JsonView> sides = common::elements_of(*list, 2);
  const std::int64_t height = common::as_size(sides[0]);
  const std::int64_t width = common::as_size(sides[1]);
  FOVEA_CHECK(height == width, kUnsupported, list->path(), ": only squares are supported, got ",
              height, " x ", width);
  return height;
}

Config parse_config(const checkpoint::HfConfig& files) {
  const JsonView root = files.config.root();
  const JsonView vision = root.at("vision_config");
  Config c;
  common::read_transformer(vision, c);
  c.init_pos_emb_height = common::read_size(vision, "init_pos_emb_height", c.init_pos_emb_height);
  c.init_pos_emb_width = common::read_size(vision, "init_pos_emb_width", c.init_pos_emb_width);
  c.grid.spatial_merge_size = read_square(vision, "merge_kernel_size", c.grid.spatial_merge_size);
  c.grid = common::read_grid_geometry(vision, c.grid);
  c.text_hidden_size = common::as_size(root.at("text_config").at("hidden_size"));
  return c;
}

}  // namespace fovea::kimi_vl
