// config.json of the three architectures with a Pixtral tower.
#include "models/mistral3/config.h"

#include <string_view>

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/processor_file.h"
#include "models/registry.h"

namespace fovea::mistral3 {

namespace {

Format format_of(std::string_view architecture) {
  if (architecture.starts_with("Llava")) return Format::kPixtral;
  return architecture.starts_with("LightOn") ? Format::kLightOnOcr : Format::kMistral3;
}

void read_vision(const JsonView& vision, Config& c) {
  common::require_number(vision, "num_channels", 3);
  common::read_transformer(vision, c);
  common::require_number(vision, "head_dim", static_cast<double>(c.head_dim()));
  c.image_size = common::read_size(vision, "image_size", c.image_size);
  c.rope_theta = common::read_rope_theta(vision, c.rope_theta);
  c.hidden_act = common::parse_activation(vision.string_or("hidden_act", "gelu"),
                                          vision.path() + ".hidden_act");
}

/// The number of blocks whose last one the projector reads.
std::int64_t blocks_that_run(const JsonView& root, std::int64_t last, std::int64_t stored) {
  constexpr const char* kKey = "vision_feature_layer";  // counts from the end
  last = root.int_or(kKey, last);
  FOVEA_CHECK(last <= -1 && last >= -stored, kUnsupported, root.path(), ": ", kKey,
              ": expected a number in [", -stored, ", -1], got ", last);
  return stored + last + 1;
}

void read_projector(const JsonView& root, std::int64_t last_layer, Config& c) {
  constexpr const char* kAct = "projector_hidden_act";
  c.num_hidden_layers = blocks_that_run(root, last_layer, c.num_hidden_layers);
  c.projector_hidden_act =
      common::parse_activation(root.string_or(kAct, "gelu"), cat(root.path(), ": ", kAct));
  c.multimodal_projector_bias =
      root.bool_or("multimodal_projector_bias", c.multimodal_projector_bias);
}

}  // namespace

Config parse_config(const checkpoint::HfConfig& files) {
  const JsonView root = files.config.root();
  const JsonView vision = root.at("vision_config");
  Config c;
  c.format = format_of(known_architecture(files));
  if (c.format == Format::kPixtral) {
    const std::string tower = vision.string_or("model_type", "clip_vision_model");
    FOVEA_CHECK(tower == "pixtral", kUnsupported, vision.path(),
                ".model_type: of this architecture only pixtral is supported, got ", tower);
    const std::string rows = root.string_or("vision_feature_select_strategy", "default");
    FOVEA_CHECK(rows == "full", kUnsupported, root.path(),
                ": vision_feature_select_strategy: only full is supported, got ", rows);
    c.multimodal_projector_bias = true;
    c.grid.spatial_merge_size = 1;
  } else {
    c.grid.spatial_merge_size =
        common::read_size(root, "spatial_merge_size", c.grid.spatial_merge_size);
  }
  read_vision(vision, c);
  c.grid = common::read_grid_geometry(vision, c.grid);
  // The projector of LightOnOCR has nothing to choose.
  if (c.format == Format::kMistral3) read_projector(root, -1, c);
  if (c.format == Format::kPixtral) read_projector(root, -2, c);
  const JsonView text = root.at("text_config");
  c.text_hidden_size = common::as_size(text.at("hidden_size"));
  c.text_rms_norm_eps = common::read_positive(text, "rms_norm_eps", c.text_rms_norm_eps);
  return c;
}

}  // namespace fovea::mistral3
