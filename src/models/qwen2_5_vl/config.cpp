// config.json of Qwen2.5-VL and of all that have its tower.
#include "models/qwen2_5_vl/config.h"

#include <algorithm>

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/registry.h"

namespace fovea::qwen2_5_vl {

bool Config::is_full(std::int64_t block) const {
  return std::ranges::find(fullatt_block_indexes, block) != fullatt_block_indexes.end();
}

std::int64_t Config::num_full() const {
  std::int64_t count = 0;
  for (std::int64_t block = 0; block < depth; ++block) count += is_full(block) ? 1 : 0;
  return count;
}

Config parse_config(const checkpoint::HfConfig& files) {
  const JsonView vision = common::vision_config(files.config.root());
  Config c;
  const auto read = [&](std::string_view key, std::int64_t& field) {
    field = common::read_size(vision, key, field);
  };
  common::read_depth_and_heads(vision, c);
  read("hidden_size", c.hidden_size);
  read("intermediate_size", c.intermediate_size);
  read("out_hidden_size", c.out_hidden_size);
  read("window_size", c.window_size);
  c.grid = common::read_grid_geometry(vision, c.grid);
  FOVEA_CHECK(c.window_side() >= 1, kCorruptData, vision.path(), ".window_size: ", c.window_size,
              " is less than a token of ", c.grid.resize_factor(), " pixels");
  if (const auto full = vision.find("fullatt_block_indexes")) {
    c.fullatt_block_indexes = common::read_block_indexes(*full, common::kMaxDepth);
  }
  c.rope_theta = common::read_rope_theta(vision, c.rope_theta);
  c.hidden_act = common::parse_activation(vision.string_or("hidden_act", "silu"),
                                          vision.path() + ".hidden_act");
  common::check_heads(vision, c.hidden_size, c.num_heads);
  const bool is_exaone = known_architecture(files).starts_with("Exaone4_5");
  c.num_key_value_heads =
      common::read_size(vision, "num_key_value_heads", is_exaone ? 8 : c.num_heads);
  FOVEA_CHECK(c.num_heads % c.num_key_value_heads == 0, kCorruptData, vision.path(),
              ".num_key_value_heads: ", c.num_key_value_heads, " do not divide ", c.num_heads,
              " heads");
  return c;
}

}  // namespace fovea::qwen2_5_vl
