// config.json of CLIP.
#include "models/clip/config.h"

#include "models/common/config_reader.h"
#include "models/registry.h"

namespace fovea::clip {

Config parse_config(const checkpoint::HfConfig& files) {
  constexpr std::int64_t kProjectionDim = 512;  // of the reference's classes
  const JsonView root = files.config.root();
  const auto vision = root.find("vision_config");
  Config c{.tower = common::read_clip(vision.value_or(root))};
  if (known_architecture(files) == "CLIPVisionModel") {
    c.tower_name = "";
  } else {
    c.projection_dim = common::read_size(root, "projection_dim", kProjectionDim);
  }
  return c;
}

}  // namespace fovea::clip
