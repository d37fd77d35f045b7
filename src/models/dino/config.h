#pragma once

#include <cstdint>

#include "checkpoint/hf_config.h"
#include "fovea/tower/ops/linear.h"
#include "models/common/geometry.h"
#include "models/common/position_table.h"

namespace fovea::dino {

/// The two towers: the same blocks under other names, with other positions.
enum class Version : std::uint8_t { kV2, kV3 };

/// The fields of config.json, named as there. Defaults are those of the reference's classes.
struct Config {
  Version version = Version::kV2;
  std::int64_t hidden_size = 0;
  std::int64_t num_hidden_layers = 12;
  std::int64_t num_attention_heads = 0;
  std::int64_t intermediate_size =
      0;  ///< wide side of the MLP; of DINOv2 it follows from mlp_ratio
  std::int64_t num_register_tokens = 0;
  /// image_size and patch_size, the size of the table of positions; the processor file says which
  /// view there is.
  common::SquareView trained{.side_px = 224, .patch_px = 16};
  double layer_norm_eps = 1e-6;
  ops::Activation hidden_act = ops::Activation::kGeluErf;
  bool gated_mlp = false;  ///< use_swiglu_ffn, use_gated_mlp
  bool key_bias = true;
  double rope_theta = 100;                                              ///< of DINOv3
  common::BicubicTable position_filter = common::BicubicTable::kPlain;  ///< of DINOv2

  /// Rows of a view in front of its patches.
  [[nodiscard]] std::int64_t class_rows() const { return 1 + num_register_tokens; }
  [[nodiscard]] std::int64_t head_dim() const { return hidden_size / num_attention_heads; }
};

/// Reads and validates config.json.
/// @throws Error(kCorruptData) naming the key for wrong types, Error(kUnsupported) for values these
/// towers do not have. Source: docs/reference/retrieval.md, "DINOv2" and "DINOv3".
[[nodiscard]] Config parse_config(const checkpoint::HfConfig& files, Version version);

}  // namespace fovea::dino
