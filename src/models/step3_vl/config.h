#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "checkpoint/hf_config.h"
#include "fovea/tower/models/encoder_graph_model.h"
#include "fovea/tower/ops/linear.h"
#include "media/resize/resize_fine.h"
#include "models/common/geometry.h"

namespace fovea::step3_vl {

/// The vision tower's fields of config.json, named as there (vision_config.*), and what it says of
/// the language model. Defaults are those of the reference's configuration class.
struct Config {
  std::int64_t hidden_size = 1792;
  std::int64_t num_hidden_layers = 63;
  std::int64_t num_attention_heads = 16;
  std::int64_t intermediate_size = 3072;
  std::int64_t output_hidden_size = 4096;  ///< channels after the first convolution
  ops::Activation hidden_act = ops::Activation::kQuickGelu;
  double layer_norm_eps = 1e-6;          ///< where the file has none, that of the checkpoint's code
  bool enable_patch = true;              ///< whether large images have windows
  std::int64_t text_hidden_size = 7168;  ///< columns of a row: text_config.hidden_size
  std::optional<std::int64_t> max_tokens;  ///< of the language model; bounds budgets

  // Fixed in the reference's code.
  static constexpr std::int64_t kPatch = 14;
  static constexpr std::int64_t kClassRows = 4;  ///< copies of the class token before the patches
  static constexpr std::array<float, 3> kMean{0.48145466f, 0.4578275f, 0.40821073f};
  static constexpr std::array<float, 3> kStd{0.26862954f, 0.26130258f, 0.27577711f};
};

/// Paths of the model protocol.
enum Path : PathId { kGlobal = 0, kLocal = 1, kNumPaths = 2 };

/// A square view as the tower sees it. A pixel is kLevelBytes bytes per channel, and two
/// convolutions have stride 2.
[[nodiscard]] constexpr common::SquareView view_of(std::int64_t side_px) {
  return {
      .side_px = side_px, .patch_px = Config::kPatch, .stride = 4, .planes = media::kLevelBytes};
}

/// The view that each path takes, in the order of Path: the whole image, and a window of it.
inline constexpr std::array<common::SquareView, kNumPaths> kViews{view_of(728), view_of(504)};

/// Reads and validates config.json. @throws Error(kCorruptData) naming the key for wrong types,
/// Error(kUnsupported) for values this tower does not have.
/// Source: docs/reference/step3_vl.md, "Configuration".
[[nodiscard]] Config parse_config(const checkpoint::HfConfig& files);

}  // namespace fovea::step3_vl
