#pragma once

#include <cstdint>

#include "checkpoint/hf_config.h"
#include "models/common/views/siglip.h"

namespace fovea::cohere_vision {

/// Cohere2VisionForConditionalGeneration and AyaVisionForConditionalGeneration.
enum class Format : std::uint8_t { kCohere2, kAya };

/// The fields of config.json that the tower needs.
struct Config {
  Format format = Format::kCohere2;
  common::SiglipConfig tower;                        ///< those layers that run
  std::int64_t alignment_intermediate_size = 36864;  ///< columns of the gate and what it gates
  double adapter_layer_norm_eps = 1e-6;
  std::int64_t text_hidden_size = 0;  ///< columns of a row

  /// Columns of the patches that make a token.
  [[nodiscard]] std::int64_t joined_width() const {
    return tower.view.merge * tower.view.merge * tower.hidden_size;
  }
};

/// Reads and validates config.json.
/// @throws Error(kCorruptData) naming the key for wrong types, Error(kUnsupported) for values this
/// tower does not have. Source: docs/reference/siglip.md, "Cohere2-Vision and Aya Vision".
[[nodiscard]] Config parse_config(const checkpoint::HfConfig& files, Format format);

}  // namespace fovea::cohere_vision
