// config.json of Qwen3-VL and Qwen3.5.
#include "models/qwen3_vl/config.h"

#include <cmath>
#include <string>

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/registry.h"

namespace fovea::qwen3_vl {

namespace {

/// The blocks whose rows are levels of their own; where the key is absent, what the reference's
/// configuration class of the architecture assumes.
std::vector<std::int64_t> read_deepstack(const JsonView& vision, std::int64_t depth,
                                         std::string_view architecture) {
  constexpr const char* kKey = "deepstack_visual_indexes";
  if (const auto levels = vision.find(kKey)) return common::read_block_indexes(*levels, depth);
  if (architecture.starts_with("Qwen3_5")) return {};
  std::vector<std::int64_t> assumed{8, 16, 24};
  FOVEA_CHECK(assumed.back() < depth, kCorruptData, vision.path(), ".", kKey,
              ": absent, and the default 8, 16, 24 needs more than ", depth, " blocks");
  return assumed;
}

}  // namespace

std::int64_t Config::position_side() const {
  return static_cast<std::int64_t>(std::sqrt(static_cast<double>(num_position_embeddings)));
}

Config parse_config(const checkpoint::HfConfig& files) {
  const JsonView vision = files.config.root().at("vision_config");
  Config c;
  const auto read = [&](std::string_view key, std::int64_t& field) {
    field = common::read_size(vision, key, field);
  };
  c.depth = common::read_size(vision, "depth", c.depth, common::kMaxDepth);
  read("hidden_size", c.hidden_size);
  read("intermediate_size", c.intermediate_size);
  read("num_heads", c.num_heads);
  read("out_hidden_size", c.out_hidden_size);
  read("num_position_embeddings", c.num_position_embeddings);
  c.grid = common::read_grid_geometry(vision, c.grid);
  c.deepstack_visual_indexes = read_deepstack(vision, c.depth, known_architecture(files));
  c.rope_theta = common::read_rope_theta(vision, c.rope_theta);
  c.hidden_act = common::parse_activation(vision.string_or("hidden_act", "gelu_pytorch_tanh"),
                                          vision.path() + ".hidden_act");
  common::check_heads(vision, c.hidden_size, c.num_heads);
  return c;
}

}  // namespace fovea::qwen3_vl
