#pragma once

#include <cstdint>

#include "checkpoint/hf_config.h"
#include "models/common/views/siglip.h"

namespace fovea::deepseek_vl {

/// The fields of config.json that the tower needs.
struct Config {
  common::SiglipConfig tower;
  std::int64_t text_hidden_size = 0;  ///< columns of a row
};

/// Reads and validates config.json.
/// @throws Error(kCorruptData) naming the key for wrong types, Error(kUnsupported) for values this
/// tower does not have. Source: docs/reference/siglip.md, "DeepSeek-VL".
[[nodiscard]] Config parse_config(const checkpoint::HfConfig& files);

}  // namespace fovea::deepseek_vl
