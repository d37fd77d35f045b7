// config.json of PaliGemma.
#include "models/paligemma/config.h"

#include "models/common/config_reader.h"

namespace fovea::paligemma {

Config parse_config(const checkpoint::HfConfig& files) {
  const JsonView root = files.config.root();
  Config c{.tower = common::read_siglip(root.at("vision_config"))};
  c.projection_dim = common::read_size(root, "projection_dim", c.projection_dim);
  return c;
}

}  // namespace fovea::paligemma
