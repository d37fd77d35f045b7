// config.json of GLM-4.1V and its successors.
#include "models/glm4v/config.h"

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/processor_file.h"
#include "models/registry.h"

namespace fovea::glm4v {

namespace {

/// The defaults of the configuration class of an architecture.
Config defaults_of(std::string_view architecture) {
  Config c;
  c.has_canvas = architecture.starts_with("Glm5Next");
  c.has_table = !c.has_canvas && !architecture.starts_with("GlmOcr");
  if (c.has_table) return c;
  c.hidden_size = 1024;
  c.num_heads = 16;
  c.out_hidden_size = 1536;
  c.intermediate_size = 4096;
  c.attention_bias = true;
  return c;
}

/// The wide side of the merger's MLP.
std::int64_t read_merger_width(const JsonView& vision, const Config& c) {
  constexpr std::int64_t kChannels = 3;
  if (c.has_table) return c.intermediate_size;
  if (!c.has_canvas) return kChannels * c.out_hidden_size;
  return common::read_size(vision, "projection_intermediate_size", 10240);
}

}  // namespace

Config parse_config(const checkpoint::HfConfig& files) {
  const JsonView vision = files.config.root().at("vision_config");
  Config c = defaults_of(known_architecture(files));
  const auto read = [&](std::string_view key, std::int64_t& field) {
    field = common::read_size(vision, key, field);
  };
  common::read_depth_and_heads(vision, c);
  read("hidden_size", c.hidden_size);
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
  c.mlp_width = c.has_table ? c.out_hidden_size : c.intermediate_size;
  c.merger_width = read_merger_width(vision, c);
  if (c.has_canvas) c.swiglu_limit = common::read_positive(vision, "swiglu_limit", 10);
  FOVEA_CHECK(!c.has_table || c.position_side() >= 1, kCorruptData, vision.path(),
              ".image_size: ", c.image_size, " pixels hold no patch of ", c.grid.patch_size);
  return c;
}

}  // namespace fovea::glm4v
