#pragma once

#include <cstdint>

#include "checkpoint/hf_config.h"
#include "models/common/views/siglip.h"

namespace fovea::idefics3 {

/// Idefics3ForConditionalGeneration, which takes images, and SmolVLMForConditionalGeneration, which
/// takes videos as well.
enum class Format : std::uint8_t { kIdefics3, kSmolVlm };

/// To which the reference limits the sides of a resized image.
inline constexpr std::int64_t kMaxSide = 4096;

/// The fields of config.json that the tower and its connector have, and the side of a view.
struct Config {
  Format format = Format::kIdefics3;
  common::SiglipConfig tower;      ///< its view is as the processor makes it; merge is scale_factor
  std::int64_t position_side = 0;  ///< the table of positions has as many rows and columns
  std::int64_t text_hidden_size = 0;  ///< text_config.hidden_size: columns of a row

  /// Columns of the patches that make a token.
  [[nodiscard]] std::int64_t joined_width() const {
    return tower.view.merge * tower.view.merge * tower.hidden_size;
  }
};

/// Reads and validates config.json, and max_image_size of the processor file.
/// @throws Error(kCorruptData) naming the key for wrong types, Error(kUnsupported) for values this
/// tower does not have. Source: docs/reference/idefics3.md, "Configuration".
[[nodiscard]] Config parse_config(const checkpoint::HfConfig& files, Format format);

}  // namespace fovea::idefics3
