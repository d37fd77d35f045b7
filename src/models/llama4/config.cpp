// config.json of Llama 4.
#include "models/llama4/config.h"

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/processor_file.h"

namespace fovea::llama4 {

namespace {

/// Requires that a layer takes what the one before it gives.
void check_width(const JsonView& vision, const char* key, std::int64_t got, std::int64_t expected) {
  FOVEA_CHECK(got == expected, kCorruptData, vision.path(), ".", key, ": expected ", expected,
              ", got ", got);
}

}  // namespace

Config parse_config(const checkpoint::HfConfig& files) {
  const JsonView root = files.config.root();
  const JsonView vision = root.at("vision_config");
  Config c;
  common::require_number(vision, "pixel_shuffle_ratio", 0.5);
  common::require_flag(vision, "multi_modal_projector_bias", false);
  common::read_transformer(vision, c);
  c.view = common::read_square_view(vision, c.view);
  c.vision_output_dim = common::read_size(vision, "vision_output_dim", c.vision_output_dim);
  c.rope_theta = common::read_rope_theta(vision, c.rope_theta);
  c.text_hidden_size = common::as_size(root.at("text_config").at("hidden_size"));

  check_width(vision, "intermediate_size", c.intermediate_size, c.joined_width());
  for (const char* key : {"projector_input_dim", "projector_output_dim"}) {
    check_width(vision, key, common::read_size(vision, key, 4096), c.vision_output_dim);
  }
  return c;
}

}  // namespace fovea::llama4
