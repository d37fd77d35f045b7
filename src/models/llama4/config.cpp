// config.json of Llama 4.
#include "models/llama4/config.h"

#include "core/check.h"
#include "models/blocks/config_reader.h"

namespace fovea::llama4 {

namespace {

/// Refuses what this tower does not have.
void check_fixed(const JsonView& vision) {
  const std::int64_t channels = blocks::read_size(vision, "num_channels", 3);
  FOVEA_CHECK(channels == 3, kUnsupported, vision.path(),
              ".num_channels: only 3 is supported, got ", channels);
  const double ratio = vision.number_or("pixel_shuffle_ratio", 0.5);
  FOVEA_CHECK(ratio == 0.5, kUnsupported, vision.path(),
              ".pixel_shuffle_ratio: only 0.5 is supported, got ", ratio);
  FOVEA_CHECK(!vision.bool_or("multi_modal_projector_bias", false), kUnsupported, vision.path(),
              ".multi_modal_projector_bias: true is not supported");
}

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
  const auto read = [&](std::string_view key, std::int64_t& field) {
    field = blocks::read_size(vision, key, field);
  };
  check_fixed(vision);
  c.num_hidden_layers =
      blocks::read_size(vision, "num_hidden_layers", c.num_hidden_layers, blocks::kMaxDepth);
  read("hidden_size", c.hidden_size);
  read("intermediate_size", c.intermediate_size);
  read("num_attention_heads", c.num_attention_heads);
  read("vision_output_dim", c.vision_output_dim);
  read("image_size", c.view.side_px);
  read("patch_size", c.view.patch_px);
  c.rope_theta = blocks::read_rope_theta(vision, vision.number_or("rope_theta", c.rope_theta));
  c.text_hidden_size = blocks::as_size(root.at("text_config").at("hidden_size"));

  blocks::check_heads(vision, c.hidden_size, c.num_attention_heads);
  check_width(vision, "intermediate_size", c.intermediate_size, c.merge_area() * c.hidden_size);
  for (const char* key : {"projector_input_dim", "projector_output_dim"}) {
    check_width(vision, key, blocks::read_size(vision, key, 4096), c.vision_output_dim);
  }
  constexpr std::int64_t kMaxSide = 4096;
  FOVEA_CHECK(c.view.side_px <= kMaxSide && c.view.side_px % (c.view.patch_px * c.view.merge) == 0,
              kCorruptData, vision.path(), ".image_size: ", c.view.side_px, " is above ", kMaxSide,
              " or no multiple of ", c.view.merge, " patches of ", c.view.patch_px);
  return c;
}

}  // namespace fovea::llama4
