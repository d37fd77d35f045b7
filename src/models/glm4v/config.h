#pragma once

#include <cstdint>
#include <limits>

#include "checkpoint/hf_config.h"
#include "fovea/options.h"
#include "fovea/tower/ops/linear.h"
#include "models/common/geometry.h"
#include "models/common/grid/processor.h"

namespace fovea::glm4v {

/// The vision tower's fields of config.json, named as there (vision_config.*), and what follows
/// from them and the architecture. Defaults are those of the reference's configuration class of
/// GLM-4.1V.
struct Config {
  std::int64_t depth = 24;
  std::int64_t hidden_size = 1536;  ///< columns of the tower
  std::int64_t num_heads = 12;
  std::int64_t image_size = 336;        ///< pixels a side that the table of positions is for
  std::int64_t out_hidden_size = 4096;  ///< columns of a row
  std::int64_t intermediate_size = 13696;
  bool attention_bias = false;  ///< of qkv; without a table, of all layers of a block
  double rms_norm_eps = 1e-5;
  double rope_theta = 10000.0;                                    ///< rope_parameters.rope_theta
  ops::Activation hidden_act = ops::Activation::kSilu;            ///< of the gates
  double swiglu_limit = std::numeric_limits<double>::infinity();  ///< of GLM-5, in all gated MLPs
  common::GridGeometry grid{.patch_size = 14};

  /// Whether there are a norm and a table of positions behind the patch embedding. GLM-OCR and
  /// GLM-5 have norms of the heads of q and k instead.
  bool has_table = true;
  bool has_canvas = false;            ///< whether the processor is that of GLM-5 (canvas.h)
  std::int64_t mlp_width = 4096;      ///< wide side of a block's MLP: out_hidden_size with a
                                      ///< table, else intermediate_size
  std::int64_t merger_width = 13696;  ///< wide side of the merger's MLP: intermediate_size with a
                                      ///< table, 3 * out_hidden_size of GLM-OCR,
                                      ///< projection_intermediate_size of GLM-5

  [[nodiscard]] std::int64_t head_dim() const { return hidden_size / num_heads; }
  [[nodiscard]] std::int64_t position_side() const { return image_size / grid.patch_size; }
};

/// Reads and validates vision_config.
/// @throws Error(kCorruptData) naming the key for wrong types, Error(kUnsupported) for values this
/// tower does not have. Source: docs/reference/glm4v.md, "Configuration".
[[nodiscard]] Config parse_config(const checkpoint::HfConfig& files);

/// Sizes, sampling and scaling of images and videos, from the processor files.
/// @throws as common::read_grid_processor. Source: docs/reference/glm4v.md, "Processing" and
/// "Sampled frames".
[[nodiscard]] common::GridProcessing read_processing(const checkpoint::HfConfig& files,
                                                     const common::GridGeometry& grid,
                                                     const MediaOptions& media);

}  // namespace fovea::glm4v
