// config.json of DeepSeek-VL.
#include "models/deepseek_vl/config.h"

#include "models/common/config_reader.h"

namespace fovea::deepseek_vl {

Config parse_config(const checkpoint::HfConfig& files) {
  const JsonView root = files.config.root();
  return {.tower = common::read_siglip(root.at("vision_config")),
          .text_hidden_size = common::as_size(root.at("text_config").at("hidden_size"))};
}

}  // namespace fovea::deepseek_vl
