// config.json of Qwen3-VL and Qwen3.5.
#include "models/qwen3_vl/config.h"

#include <cmath>
#include <string>

#include "core/check.h"
#include "models/blocks/activation.h"
#include "models/blocks/config_reader.h"

namespace fovea::qwen3_vl {

namespace {

constexpr std::int64_t kMaxResizeFactor = std::int64_t{1} << 12;

/// What the reference's configuration class of an architecture assumes where the key is absent.
std::vector<std::int64_t> default_deepstack(const std::string& architecture) {
  if (architecture.starts_with("Qwen3_5")) return {};
  return {8, 16, 24};
}

void check_fixed(const JsonView& vision, std::string_view key, std::int64_t expected) {
  const std::int64_t value = blocks::read_size(vision, key, expected);
  FOVEA_CHECK(value == expected, kUnsupported, vision.path(), ".", key, ": only ", expected,
              " is supported, got ", value);
}

void check_consistent(const JsonView& vision, const Config& c) {
  FOVEA_CHECK(c.grid.resize_factor() <= kMaxResizeFactor, kCorruptData, vision.path(),
              ": patch_size ", c.grid.patch_size, " times spatial_merge_size ",
              c.grid.spatial_merge_size, " is above ", kMaxResizeFactor);
  blocks::check_heads(vision, c.hidden_size, c.num_heads);
  FOVEA_CHECK(c.position_side() * c.position_side() == c.num_position_embeddings, kCorruptData,
              vision.path(), ".num_position_embeddings: ", c.num_position_embeddings,
              " is not a square");
}

}  // namespace

std::int64_t Config::position_side() const {
  return static_cast<std::int64_t>(std::sqrt(static_cast<double>(num_position_embeddings)));
}

Config parse_config(const checkpoint::HfConfig& files) {
  const JsonView vision = files.config.root().at("vision_config");
  Config c;
  const auto read = [&](std::string_view key, std::int64_t& field) {
    field = blocks::read_size(vision, key, field);
  };
  c.depth = blocks::read_size(vision, "depth", c.depth, blocks::kMaxDepth);
  read("hidden_size", c.hidden_size);
  read("intermediate_size", c.intermediate_size);
  read("num_heads", c.num_heads);
  read("spatial_patch_size", c.grid.patch_size);
  read("patch_size", c.grid.patch_size);
  read("spatial_merge_size", c.grid.spatial_merge_size);
  read("out_hidden_size", c.out_hidden_size);
  read("num_position_embeddings", c.num_position_embeddings);
  for (const char* key : {"in_chans", "in_channels"}) check_fixed(vision, key, 3);
  check_fixed(vision, "temporal_patch_size", c.grid.temporal_patch_size);
  const auto levels = vision.find("deepstack_visual_indexes");
  c.deepstack_visual_indexes = levels ? blocks::read_block_indexes(*levels, c.depth)
                                      : default_deepstack(files.architecture());
  if (const auto rope = vision.find("rope_parameters")) {
    c.rope_theta = rope->number_or("rope_theta", c.rope_theta);
  }
  c.hidden_act = blocks::parse_activation(vision.string_or("hidden_act", "gelu_pytorch_tanh"),
                                          vision.path() + ".hidden_act");
  check_consistent(vision, c);
  return c;
}

}  // namespace fovea::qwen3_vl
