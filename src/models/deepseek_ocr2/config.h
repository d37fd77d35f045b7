#pragma once

#include <array>
#include <cstdint>

#include "checkpoint/hf_config.h"
#include "fovea/tower/models/encoder_graph_model.h"
#include "fovea/tower/ops/linear.h"
#include "models/common/geometry.h"
#include "models/common/views/sam.h"

namespace fovea::deepseek_ocr2 {

/// Whose files a checkpoint has: they differ in config.json and in what the processor does.
enum class Format : std::uint8_t { kVendor, kTransformers };

/// A decoder of Qwen2, with the keys of encoder_config. The vendor's code fixes all but its width.
struct Decoder {
  std::int64_t hidden_size = 896;
  std::int64_t num_hidden_layers = 24;
  std::int64_t num_attention_heads = 14;
  std::int64_t num_key_value_heads = 2;
  std::int64_t intermediate_size = 4864;
  double rms_norm_eps = 1e-6;
  double rope_theta = 1e6;
  ops::Activation hidden_act = ops::Activation::kSilu;

  [[nodiscard]] std::int64_t head_dim() const { return hidden_size / num_attention_heads; }
};

struct Config {
  Format format = Format::kVendor;
  common::SamConfig sam{.downsample_channels = {512, 896}};
  Decoder decoder;
  std::int64_t n_embed = 1280;                  ///< of the language model: columns of a row
  std::int64_t max_position_embeddings = 8192;  ///< of the language model; bounds budgets
};

/// Paths of the model protocol.
enum Path : PathId { kGlobal = 0, kLocal = 1, kNumPaths = 2 };

/// The view that each path takes, in the order of Path.
using Views = std::array<common::SquareView, kNumPaths>;

/// Sides of the views that there are learned queries for, and pixels of a patch.
inline constexpr std::int64_t kTileSide = 768;
inline constexpr std::int64_t kBaseSide = 1024;
inline constexpr std::int64_t kPatch = 16;

/// Reads and validates config.json, which has the vendor's format if vision_config has `width`.
/// @throws Error(kCorruptData) naming the key, Error(kUnsupported) for values that the towers do
/// not have. Source: docs/reference/deepseek_ocr2.md, "Configuration".
[[nodiscard]] Config parse_config(const checkpoint::HfConfig& files);

}  // namespace fovea::deepseek_ocr2
