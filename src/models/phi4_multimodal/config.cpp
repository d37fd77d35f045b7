// config.json of Phi-4-multimodal in both formats.
#include "models/phi4_multimodal/config.h"

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/processor_file.h"
#include "models/registry.h"

namespace fovea::phi4_multimodal {

namespace {

/// The tower of the vendor's format is fixed in its code; what it makes of the rows is not.
void check_vendor(const JsonView& root) {
  const auto layers = root.find("embd_layer");
  const auto image = layers ? layers->find("image_embd_layer") : std::nullopt;
  if (!image) return;
  common::require_number(*image, "crop_size", 448);
  common::require_text(*image, "hd_transform_order", "sub_glb");
  common::require_text(*image, "image_token_compression_cls", "avg_pool_2d");
  common::require_text(*image, "projection_cls", "mlp");
  common::require_flag(*image, "use_hd_transform", true);
  common::require_flag(*image, "with_learnable_separator", true);
}

void read_native(const JsonView& vision, common::SiglipConfig& tower) {
  tower.num_hidden_layers = 27;  // of the reference's class
  tower = common::read_siglip_layers(vision, tower);
  tower.view = common::read_square_view(vision, tower.view);
  common::require_number(vision, "crop_size", static_cast<double>(tower.view.side_px));
  const std::int64_t layer = vision.int_or("feature_layer", -2);  // counts from the end
  FOVEA_CHECK(layer <= -2 && layer >= -tower.num_hidden_layers, kUnsupported, vision.path(),
              ".feature_layer: expected a number in [", -tower.num_hidden_layers, ", -2], got ",
              layer);
  tower.num_hidden_layers += layer + 1;
}

}  // namespace

Config parse_config(const checkpoint::HfConfig& files) {
  const JsonView root = files.config.root();
  Config c;
  if (known_architecture(files).starts_with("Phi4MM")) {
    c.format = Format::kVendor;
    check_vendor(root);
  } else {
    read_native(root.at("vision_config"), c.tower);
  }
  c.text_hidden_size = common::read_size(root, "hidden_size", c.text_hidden_size);
  return c;
}

}  // namespace fovea::phi4_multimodal
