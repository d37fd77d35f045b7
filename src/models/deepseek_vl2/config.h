#pragma once

#include <cstdint>
#include <vector>

#include "checkpoint/hf_config.h"
#include "models/common/views/siglip.h"

namespace fovea::deepseek_vl2 {

/// Pixels of a canvas that tiles of the view cover.
struct Resolution {
  std::int64_t width_px = 0;
  std::int64_t height_px = 0;
};

/// The fields of config.json that the tower and its projector have, named as there.
struct Config {
  common::SiglipConfig tower{.hidden_size = 1152,
                             .num_hidden_layers = 27,
                             .num_attention_heads = 16,
                             .intermediate_size = 4304,
                             .view = {.side_px = 384, .patch_px = 14}};
  std::int64_t n_embed = 2048;          ///< projector_config.n_embed: columns of a row
  std::int64_t projector_width = 2048;  ///< n_embed times projector_config.mlp_ratio
  bool global_first = true;             ///< global_view_pos is head
  std::vector<Resolution> candidate_resolutions;

  /// Tokens a side of a view: pairs of patches, of which the last may be half.
  [[nodiscard]] std::int64_t tokens_side() const { return (tower.view.grid() + 1) / 2; }
  [[nodiscard]] std::int64_t tokens() const { return tokens_side() * tokens_side(); }
};

/// Reads and validates config.json. @throws Error(kCorruptData) naming the key, Error(kUnsupported)
/// for another tower, projector or tile_tag. Source: docs/reference/deepseek_vl2.md,
/// "Configuration".
[[nodiscard]] Config parse_config(const checkpoint::HfConfig& files);

}  // namespace fovea::deepseek_vl2
