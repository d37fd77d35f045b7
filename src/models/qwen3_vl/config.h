#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "checkpoint/hf_config.h"
#include "fovea/options.h"
#include "fovea/tower/ops/linear.h"
#include "models/common/geometry.h"
#include "models/common/grid/processor.h"

namespace fovea::qwen3_vl {

/// How a checkpoint names its mergers, and the layers in each.
struct MergerNames {
  std::string_view levels = "deepstack_merger_list.";
  std::string_view norm = ".norm";
  std::string_view fc1 = ".linear_fc1";
  std::string_view fc2 = ".linear_fc2";
};

/// The vision tower's fields of config.json, named as there (vision_config.*). Defaults are those
/// of the reference's configuration class.
struct Config {
  std::int64_t depth = 27;
  std::int64_t hidden_size = 1152;
  std::int64_t intermediate_size = 4304;
  std::int64_t num_heads = 16;
  std::int64_t out_hidden_size = 3584;
  std::int64_t num_position_embeddings = 2304;
  std::vector<std::int64_t> deepstack_visual_indexes;       ///< absent: [8, 16, 24], or none
  double rope_theta = 10000.0;                              ///< rope_parameters.rope_theta
  ops::Activation hidden_act = ops::Activation::kGeluTanh;  ///< of the MLP; mergers have kGeluErf
  common::GridGeometry grid;                                ///< patch_size, spatial_merge_size
  MergerNames mergers;
  /// Whether the limits of a video are those of Qwen2-VL's class, which hold for each frame.
  bool has_frame_limits = false;

  [[nodiscard]] std::int64_t head_dim() const { return hidden_size / num_heads; }
  /// Side of the table of positions, floor(sqrt(num_position_embeddings)): what is left of the
  /// embeddings is not used.
  [[nodiscard]] std::int64_t position_side() const;
  /// Columns of the rows that a merger joins.
  [[nodiscard]] std::int64_t joined_width() const { return grid.merge_area() * hidden_size; }
  [[nodiscard]] std::int64_t num_deepstack() const {
    return static_cast<std::int64_t>(deepstack_visual_indexes.size());
  }
  /// Columns of an output row: the main embedding and the deepstack levels side by side.
  [[nodiscard]] std::int64_t out_width() const { return out_hidden_size * (1 + num_deepstack()); }
};

/// Reads and validates vision_config.
/// @throws Error(kCorruptData) naming the key for wrong types, Error(kUnsupported) for values this
/// tower does not have (an unknown activation, other than 3 channels).
/// Source: docs/reference/qwen_glm.md, "Configuration".
[[nodiscard]] Config parse_config(const checkpoint::HfConfig& files);

/// Sizes, sampling and scaling of images and videos, from the processor files.
/// @throws as common::read_grid_processor; Error(kCorruptData) for bounds of frames that are no
/// positive numbers. Source: docs/reference/qwen_glm.md, "Resized sizes" and "Sampled frames".
[[nodiscard]] common::GridProcessing read_processing(const checkpoint::HfConfig& files,
                                                     const common::GridGeometry& grid,
                                                     const MediaOptions& media);

}  // namespace fovea::qwen3_vl
