// config.json of Gemma 4.
#include "models/gemma4/config.h"

#include <string>

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/processor_file.h"

namespace fovea::gemma4 {

Config parse_config(const checkpoint::HfConfig& files) {
  const JsonView root = files.config.root();
  const JsonView vision = root.at("vision_config");
  Config c;
  const auto read = [&](std::string_view key, std::int64_t& field) {
    field = common::read_size(vision, key, field);
  };
  read("hidden_size", c.hidden_size);
  read("intermediate_size", c.intermediate_size);
  read("num_attention_heads", c.num_attention_heads);
  read("head_dim", c.head_dim);
  read("position_embedding_size", c.position_embedding_size);
  read("pooling_kernel_size", c.grid.spatial_merge_size);
  c.num_hidden_layers =
      common::read_size(vision, "num_hidden_layers", c.num_hidden_layers, common::kMaxDepth);
  FOVEA_CHECK(c.attention_width() <= common::kMaxSize, kCorruptData, vision.path(), ": ",
              c.num_attention_heads, " heads of ", c.head_dim, " are wider than ",
              common::kMaxSize);
  common::check_heads(vision, c.attention_width(), c.num_attention_heads);
  common::require_number(vision, "num_key_value_heads", static_cast<double>(c.num_attention_heads));
  common::require_flag(vision, "attention_bias", false);
  c.rope_theta = common::read_rope_theta(vision, c.rope_theta);
  c.rms_norm_eps = common::read_positive(vision, "rms_norm_eps", c.rms_norm_eps);
  c.hidden_activation =
      common::parse_activation(vision.string_or("hidden_activation", "gelu_pytorch_tanh"),
                               vision.path() + ".hidden_activation");
  c.use_clipped_linears = vision.bool_or("use_clipped_linears", c.use_clipped_linears);
  c.standardize = vision.bool_or("standardize", c.standardize);
  c.grid = common::read_grid_geometry(vision, c.grid);
  c.text_hidden_size = common::as_size(root.at("text_config").at("hidden_size"));
  return c;
}

}  // namespace fovea::gemma4
