// config.json of MiniCPM-V 4.6.
#include "models/minicpmv4_6/config.h"

#include "core/check.h"
#include "models/common/config_reader.h"

namespace fovea::minicpmv4_6 {

namespace {

/// Requires a kernel of 2 x 2, where the key is there.
void require_kernel(const JsonView& object, const char* key) {
  const std::int64_t side = common::read_square(object, key, Config::kWindow);
  FOVEA_CHECK(side == Config::kWindow, kUnsupported, object.at(key).path(),
              ": only 2 x 2 is supported, got a side of ", side);
}

}  // namespace

Config parse_config(const checkpoint::HfConfig& files) {
  const JsonView root = files.config.root();
  const JsonView vision = root.at("vision_config");
  Config c;
  c.tower = common::read_siglip_layers(vision, {});
  c.tower.view = common::read_square_view(vision, c.tower.view);
  c.grid.patch_size = c.tower.view.patch_px;
  // The number at the top counts, and overwrites that of vision_config in the reference.
  c.insert_layer_id = root.int_or("insert_layer_id", c.insert_layer_id);
  FOVEA_CHECK(c.insert_layer_id >= 0 && c.insert_layer_id < c.tower.num_hidden_layers, kUnsupported,
              root.path(), ": insert_layer_id: expected a layer in [0, ",
              c.tower.num_hidden_layers - 1, "], got ", c.insert_layer_id);
  require_kernel(vision, "window_kernel_size");
  require_kernel(root, "merge_kernel_size");
  common::require_number(root, "merger_times", 1);
  common::require_text(root, "downsample_mode", "16x");
  common::require_flag(root, "drop_vision_last_layer", false);
  c.text_hidden_size = common::as_size(root.at("text_config").at("hidden_size"));
  return c;
}

}  // namespace fovea::minicpmv4_6
