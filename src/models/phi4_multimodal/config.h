#pragma once

#include <cstdint>

#include "checkpoint/hf_config.h"
#include "media/resize/resize_fine.h"
#include "models/common/views/siglip.h"

namespace fovea::phi4_multimodal {

/// The formats of checkpoints, which have other names of tensors.
enum class Format : std::uint8_t {
  kNative,  ///< Phi4MultimodalForCausalLM, of transformers
  kVendor,  ///< Phi4MMForCausalLM
};

/// Views as grids of single patches, to which the planes of level bytes are what frames are.
[[nodiscard]] constexpr common::GridGeometry grid_of(const common::SquareView& view) {
  return {.patch_size = view.patch_px, .spatial_merge_size = 1, .temporal_patch_size = view.planes};
}

/// The fields of config.json that the tower and its projector have, named as transformers names
/// them. Defaults are those of its configuration class, and the vendor's tower.
struct Config {
  Format format = Format::kNative;
  /// vision_config; of its blocks those that run: fewer where feature_layer says so.
  common::SiglipConfig tower{
      .hidden_size = 1152,
      .num_hidden_layers = 26,
      .num_attention_heads = 16,
      .intermediate_size = 4304,
      .view = {.side_px = 448, .patch_px = 14, .merge = 2, .planes = media::kLevelBytes}};
  std::int64_t text_hidden_size = 3072;  ///< hidden_size: columns of a row
};

/// Reads and validates config.json of either format, by its architecture.
/// @throws Error(kCorruptData) naming the key for wrong types, Error(kUnsupported) for values this
/// tower does not have. Source: docs/reference/phi4_multimodal.md, "Configuration".
[[nodiscard]] Config parse_config(const checkpoint::HfConfig& files);

}  // namespace fovea::phi4_multimodal
