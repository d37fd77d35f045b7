#pragma once

#include <cstdint>
#include <string_view>

#include "checkpoint/hf_config.h"
#include "fovea/options.h"
#include "fovea/tower/ops/linear.h"
#include "models/common/geometry.h"
#include "models/common/grid/processor.h"

namespace fovea::mistral3 {

/// The architectures that have this tower.
enum class Format : std::uint8_t {
  kMistral3,    ///< Mistral3ForConditionalGeneration
  kPixtral,     ///< LlavaForConditionalGeneration: no patches are joined
  kLightOnOcr,  ///< LightOnOCRForConditionalGeneration: other names of tensors
};

/// The fields of config.json that the tower and its projector have, named as there. Defaults are
/// those of the reference's configuration classes.
struct Config {
  Format format = Format::kMistral3;
  std::int64_t hidden_size = 1024;
  std::int64_t intermediate_size = 4096;
  std::int64_t num_hidden_layers = 24;  ///< that run: fewer where vision_feature_layer says so
  std::int64_t num_attention_heads = 16;
  std::int64_t image_size = 1024;  ///< the longest side that the tower was made for
  double rope_theta = 10000.0;
  ops::Activation hidden_act = ops::Activation::kGeluErf;            ///< of the gates
  ops::Activation projector_hidden_act = ops::Activation::kGeluErf;  ///< between its two layers
  bool multimodal_projector_bias = false;
  double text_rms_norm_eps = 1e-6;       ///< text_config.rms_norm_eps, of the projector's norm
  std::int64_t text_hidden_size = 5120;  ///< text_config.hidden_size: columns of a row
  common::GridGeometry grid{.patch_size = 16, .spatial_merge_size = 2, .temporal_patch_size = 1};

  [[nodiscard]] std::int64_t head_dim() const { return hidden_size / num_attention_heads; }
  /// Columns of the patches that become one row, side by side.
  [[nodiscard]] std::int64_t joined_width() const { return grid.merge_area() * hidden_size; }
};

/// Reads and validates config.json of any of the formats, by its architecture.
/// @throws Error(kCorruptData) naming the key for wrong types, Error(kUnsupported) for values this
/// tower does not have. Source: docs/reference/mistral3.md, "Configuration".
[[nodiscard]] Config parse_config(const checkpoint::HfConfig& files);

/// Sizes and scaling of images, from the processor files.
/// @throws Error(kCorruptData) naming the key for wrong types and for sizes that contradict
/// `config`, Error(kUnsupported) for steps that are switched off and for another filter.
/// Source: docs/reference/mistral3.md, "Processing".
[[nodiscard]] common::GridProcessing read_processing(const checkpoint::HfConfig& files,
                                                     const Config& config,
                                                     const MediaOptions& media);

}  // namespace fovea::mistral3
