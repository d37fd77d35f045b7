#pragma once

#include <cstdint>

#include "checkpoint/hf_config.h"
#include "fovea/tower/ops/linear.h"
#include "models/common/geometry.h"

namespace fovea::kimi_vl {

/// The vision tower's fields of config.json, named as those of Kimi-VL (vision_config.*), which
/// Kimi-K2.5 has under other names. Defaults are those of the reference's configuration classes.
struct Config {
  std::int64_t num_hidden_layers = 27;
  std::int64_t hidden_size = 1152;
  std::int64_t intermediate_size = 4304;
  std::int64_t num_attention_heads = 16;
  std::int64_t init_pos_emb_height = 64;  ///< rows of the table of positions
  std::int64_t init_pos_emb_width = 64;
  std::int64_t init_pos_emb_time = 0;    ///< frames of a chunk that have positions; 0: images alone
  std::int64_t text_hidden_size = 2048;  ///< text_config.hidden_size: columns of a row
  double rope_theta = 10000.0;
  ops::Activation hidden_act = ops::Activation::kGeluTanh;
  ops::Activation projector_hidden_act = ops::Activation::kGeluErf;
  double projector_ln_eps = 1e-5;
  common::GridGeometry grid{.patch_size = 14, .temporal_patch_size = 1};

  [[nodiscard]] std::int64_t head_dim() const { return hidden_size / num_attention_heads; }
  /// Columns of the rows that the projector joins.
  [[nodiscard]] std::int64_t joined_width() const { return grid.merge_area() * hidden_size; }
};

/// The side of a square that `object` gives as [height, width]; `fallback` where the key is absent.
/// @throws Error(kCorruptData) naming the key for anything but two sizes, Error(kUnsupported) if
/// they differ.
[[nodiscard]] std::int64_t read_square(const JsonView& object, std::string_view key,
                                       std::int64_t fallback);

/// Reads and validates vision_config of Kimi-VL and the width of the language model.
/// @throws Error(kCorruptData) naming the key for wrong types, Error(kUnsupported) for values this
/// tower does not have. Source: docs/reference/kimi_vl.md, "Configuration".
[[nodiscard]] Config parse_config(const checkpoint::HfConfig& files);

/// The same of Kimi-K2.5: the keys of published checkpoints (vt_hidden_size, ...), or those that
/// transformers writes; and the frames of a chunk, which the processor files have.
/// @throws as parse_config. Source: docs/reference/kimi_vl.md, "Kimi-K2.5".
[[nodiscard]] Config parse_k25_config(const checkpoint::HfConfig& files);

}  // namespace fovea::kimi_vl
