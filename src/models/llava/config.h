#pragma once

#include <cstdint>

#include "checkpoint/hf_config.h"
#include "fovea/tower/ops/linear.h"
#include "models/common/views/siglip.h"

namespace fovea::llava {

/// LlavaForConditionalGeneration, LlavaNextForConditionalGeneration and
/// LlavaOnevisionForConditionalGeneration.
enum class Format : std::uint8_t { kLlava, kNext, kOnevision };

enum class Tower : std::uint8_t { kClip, kSiglip };

/// The fields of config.json that the tower and its projector need.
struct Config {
  Format format = Format::kLlava;
  Tower kind = Tower::kClip;
  common::SiglipConfig tower;  ///< those layers that run; ClipConfig is the same
  ops::Activation projector_hidden_act = ops::Activation::kGeluErf;
  bool multimodal_projector_bias = true;
  /// Canvases with more rows than this number of views are shrunk; 0: none are.
  std::int64_t max_canvas_views = 0;
  std::int64_t text_hidden_size = 0;  ///< text_config.hidden_size: columns of a row
};

/// Reads and validates config.json.
/// @throws Error(kCorruptData) naming the key for wrong types, Error(kUnsupported) for values this
/// tower does not have. Source: docs/reference/llava.md, "Configuration".
[[nodiscard]] Config parse_config(const checkpoint::HfConfig& files, Format format);

}  // namespace fovea::llava
