#pragma once

#include <cstdint>

#include "checkpoint/hf_config.h"
#include "fovea/tower/ops/linear.h"
#include "models/common/geometry.h"

namespace fovea::internvl {

/// The formats of checkpoints: the same tower under other names, in config.json and among the
/// tensors. InternVLChatModel is the authors', InternVLForConditionalGeneration is transformers'.
/// Qianfan-OCR has the keys of the one in its vision_config and is the other in all else.
enum class Format : std::uint8_t { kChat, kNative, kQianfan };

/// The vision tower's fields of config.json, named as in the authors' format. Defaults are those of
/// InternViT-300M.
struct Config {
  Format format = Format::kNative;
  std::int64_t hidden_size = 1024;
  std::int64_t num_hidden_layers = 24;  ///< those that run: select_layer may leave out the last
  std::int64_t num_attention_heads = 16;
  std::int64_t intermediate_size = 4096;
  /// A tile, a thumbnail or a frame: image_size, patch_size and 1 / downsample_ratio.
  common::SquareView view{.side_px = 448, .patch_px = 14, .merge = 2};
  bool qkv_bias = false;  ///< where the file does not say it: the published 300M has them
  bool qk_normalization = false;
  bool rms_norm = false;  ///< norm_type "rms_norm"; else "layer_norm"
  double layer_norm_eps = 1e-6;
  ops::Activation hidden_act = ops::Activation::kGeluErf;
  ops::Activation projector_act = ops::Activation::kGeluErf;
  std::int64_t llm_hidden_size = 0;  ///< columns of a row, those of the language model

  /// Columns of the patches that make a token.
  [[nodiscard]] std::int64_t joined_width() const { return view.merge * view.merge * hidden_size; }
};

/// Reads and validates config.json.
/// @throws Error(kCorruptData) naming the key for wrong types, Error(kUnsupported) for values this
/// tower does not have. Source: docs/reference/internvl.md, "Configuration".
[[nodiscard]] Config parse_config(const checkpoint::HfConfig& files, Format format);

}  // namespace fovea::internvl
