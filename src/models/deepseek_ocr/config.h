#pragma once

#include <array>
#include <cstdint>

#include "checkpoint/hf_config.h"
#include "fovea/tower/models/encoder_graph_model.h"
#include "models/common/geometry.h"
#include "models/common/views/sam.h"

namespace fovea::deepseek_ocr {

/// Fields of config.json and sizes that the vendor's code fixes. SAM:
/// vision_config.width.sam_vit_b; CLIP: vision_config.width["clip-l-14-224"].
struct Config {
  common::SamConfig sam;
  std::int64_t clip_width = 1024;
  std::int64_t clip_heads = 16;
  std::int64_t clip_layers = 24;
  std::int64_t projector_input_dim = 2048;      ///< projector_config.input_dim
  std::int64_t n_embed = 1280;                  ///< projector_config.n_embed: columns of a row
  std::int64_t max_position_embeddings = 8192;  ///< of the language model; bounds budgets

  // Fixed in the vendor's code, confirmed by tensor shapes.
  static constexpr std::int64_t kPatch = 16;
  static constexpr std::int64_t kMlpRatio = 4;
  static constexpr std::int64_t kClipGrid = 16;  ///< side of the stored CLIP position table

  [[nodiscard]] std::int64_t clip_head_dim() const { return clip_width / clip_heads; }
  /// Channels of the SAM features: what CLIP reads instead of patches.
  [[nodiscard]] std::int64_t feature_width() const { return sam.feature_width(); }
};

/// Paths of the model protocol.
enum Path : PathId { kGlobal = 0, kLocal = 1, kNumPaths = 2 };

/// A square view as the towers see it.
[[nodiscard]] constexpr common::SquareView view_of(std::int64_t side_px) {
  return common::sam_view(side_px, Config::kPatch);
}

/// The view that each path takes, in the order of Path.
using Views = std::array<common::SquareView, kNumPaths>;

/// Reads and validates config.json. @throws Error(kCorruptData) naming the key, Error(kUnsupported)
/// for another projector or tile_tag. Source: docs/reference/deepseek_ocr.md, "Configuration".
[[nodiscard]] Config parse_config(const checkpoint::HfConfig& files);

}  // namespace fovea::deepseek_ocr
