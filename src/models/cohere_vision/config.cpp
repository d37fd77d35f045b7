// config.json of Cohere2-Vision and Aya Vision.
#include "models/cohere_vision/config.h"

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/processor_file.h"

namespace fovea::cohere_vision {

namespace {

/// Aya Vision reads what a layer of the tower gives, the last unless the file says otherwise.
void read_aya(const JsonView& root, Config& c) {
  std::int64_t& layers = c.tower.num_hidden_layers;
  const std::int64_t last = root.int_or("vision_feature_layer", -1);  // counts from the end
  FOVEA_CHECK(last <= -1 && last >= -layers, kUnsupported, root.path(),
              ": vision_feature_layer: expected a number in [", -layers, ", -1], got ", last);
  layers += last + 1;
  common::require_text(root, "vision_feature_select_strategy", "full");
  c.alignment_intermediate_size = c.text_hidden_size;
  c.adapter_layer_norm_eps =
      common::read_positive(root, "adapter_layer_norm_eps", c.adapter_layer_norm_eps);
}

}  // namespace

Config parse_config(const checkpoint::HfConfig& files, Format format) {
  constexpr const char* kWide = "alignment_intermediate_size";
  const JsonView root = files.config.root();
  Config c{.format = format, .tower = common::read_siglip(root.at("vision_config"))};
  c.text_hidden_size = common::as_size(root.at("text_config").at("hidden_size"));
  if (format == Format::kAya) read_aya(root, c);
  common::SquareView& view = c.tower.view;
  view.merge = common::read_size(root, "downsample_factor", 2);
  FOVEA_CHECK(view.grid() % view.merge == 0, kUnsupported, root.path(),
              ": downsample_factor: ", view.merge, " does not divide a grid of ", view.grid(), "x",
              view.grid(), " patches");
  c.alignment_intermediate_size = common::read_size(root, kWide, c.alignment_intermediate_size);
  FOVEA_CHECK(c.alignment_intermediate_size % 2 == 0, kUnsupported, root.path(), ": ", kWide, ": ",
              c.alignment_intermediate_size, " has no two halves");
  return c;
}

}  // namespace fovea::cohere_vision
