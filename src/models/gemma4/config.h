#pragma once

#include <cstdint>

#include "checkpoint/hf_config.h"
#include "fovea/options.h"
#include "fovea/tower/ops/linear.h"
#include "models/common/geometry.h"
#include "models/common/grid/processor.h"

namespace fovea::gemma4 {

/// The vision tower's fields of config.json, named as there (vision_config.*). Defaults are those
/// of the reference's configuration class.
struct Config {
  std::int64_t hidden_size = 768;
  std::int64_t intermediate_size = 3072;
  std::int64_t num_hidden_layers = 16;
  std::int64_t num_attention_heads = 12;
  std::int64_t head_dim = 64;
  ops::Activation hidden_activation = ops::Activation::kGeluTanh;  ///< of the gates
  double rms_norm_eps = 1e-6;
  double rope_theta = 100;
  std::int64_t position_embedding_size = 10240;  ///< entries of the table of each axis
  bool use_clipped_linears = false;   ///< inputs and results of linear layers have bounds
  bool standardize = false;           ///< pooled rows are shifted and scaled by column
  std::int64_t text_hidden_size = 0;  ///< text_config.hidden_size: columns of a row
  /// spatial_merge_size is pooling_kernel_size.
  common::GridGeometry grid{.patch_size = 16, .spatial_merge_size = 3, .temporal_patch_size = 1};

  /// Columns of q, of k and of v.
  [[nodiscard]] std::int64_t attention_width() const { return num_attention_heads * head_dim; }
};

/// Reads and validates vision_config and the width of the language model.
/// @throws Error(kCorruptData) naming the key for wrong types, Error(kUnsupported) for values this
/// tower does not have. Source: docs/reference/gemma4.md, "Configuration".
[[nodiscard]] Config parse_config(const checkpoint::HfConfig& files);

/// Sizes and sampling of images and videos, from the processor files. Bytes become values from -1
/// to 1, whatever these say.
/// @throws Error(kCorruptData) naming the key for wrong types and for sizes that contradict
/// `config`, Error(kUnsupported) for steps that are switched off or on, and for numbers of tokens
/// that the reference does not have. Source: docs/reference/gemma4.md, "Processing".
[[nodiscard]] common::GridProcessing read_processing(const checkpoint::HfConfig& files,
                                                     const Config& config,
                                                     const MediaOptions& media);

}  // namespace fovea::gemma4
