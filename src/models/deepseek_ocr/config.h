#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/hf_config.h"
#include "fovea/options.h"
#include "media/resize.h"

namespace fovea::deepseek_ocr {

/// Fields of config.json and sizes that the vendor's code fixes. SAM:
/// vision_config.width.sam_vit_b; CLIP: vision_config.width["clip-l-14-224"].
struct Config {
  std::int64_t sam_width = 768;
  std::int64_t sam_heads = 12;
  std::int64_t sam_layers = 12;
  std::vector<std::int64_t> global_attn_indexes{2, 5, 8, 11};
  std::array<std::int64_t, 2> downsample_channels{512, 1024};
  std::int64_t clip_width = 1024;
  std::int64_t clip_heads = 16;
  std::int64_t clip_layers = 24;
  std::int64_t projector_input_dim = 2048;      ///< projector_config.input_dim
  std::int64_t n_embed = 1280;                  ///< projector_config.n_embed: columns of a row
  std::int64_t max_position_embeddings = 8192;  ///< of the language model; bounds budgets

  // Fixed in the vendor's code, confirmed by tensor shapes.
  static constexpr std::int64_t kPatch = 16;
  static constexpr std::int64_t kWindow = 14;
  static constexpr std::int64_t kNeckChannels = 256;
  static constexpr std::int64_t kMlpRatio = 4;
  static constexpr std::int64_t kSamGrid = 64;   ///< side of the stored SAM position table
  static constexpr std::int64_t kClipGrid = 16;  ///< side of the stored CLIP position table

  [[nodiscard]] std::int64_t sam_head_dim() const { return sam_width / sam_heads; }
  [[nodiscard]] std::int64_t clip_head_dim() const { return clip_width / clip_heads; }
  /// Channels of the SAM features: what CLIP reads instead of patches.
  [[nodiscard]] std::int64_t feature_width() const { return downsample_channels[1]; }
  [[nodiscard]] bool is_global_block(std::int64_t layer) const;
};

/// Sizes derived from the side of a square view.
struct ViewGeometry {
  std::int64_t side_px = 0;

  [[nodiscard]] std::int64_t grid() const {
    return side_px / Config::kPatch;
  }  ///< SAM tokens a side
  [[nodiscard]] std::int64_t tokens_side() const {
    return grid() / 4;
  }  ///< after both strides of 2
  [[nodiscard]] std::int64_t tokens() const { return tokens_side() * tokens_side(); }
  [[nodiscard]] std::size_t pixel_bytes() const {
    return static_cast<std::size_t>(side_px * side_px * 3);
  }
};

/// How pictures become views. The five sizes are engine options of the vendor, in no JSON file;
/// these are those of its default mode ("gundam").
struct PreprocessConfig {
  ViewGeometry base{1024};  ///< the global view: the whole picture on a grey canvas
  ViewGeometry tile{640};   ///< local tiles of pictures larger than tile_threshold_px
  std::int64_t tile_threshold_px = 640;
  std::int64_t min_crops = 2;
  std::int64_t max_crops = 6;
  std::array<float, 3> image_mean{0.5f, 0.5f, 0.5f};
  std::array<float, 3> image_std{0.5f, 0.5f, 0.5f};
  media::ResizeEngine engine = media::ResizeEngine::kPillow;
};

/// Reads and validates config.json. @throws Error(kCorruptData) naming the key, Error(kUnsupported)
/// for another projector or tile_tag. Source: DeepSeek-OCR specification, section 2.
[[nodiscard]] Config parse_config(const checkpoint::HfConfig& files);

/// Mean and deviation from processor_config.json, if there is one.
/// @throws Error(kCorruptData) naming the key for wrong types and deviations that are not above 0.
[[nodiscard]] PreprocessConfig parse_preprocess_config(const checkpoint::HfConfig& files,
                                                       const MediaOptions& media);

/// ModelFamily::assumptions.
[[nodiscard]] std::string assumptions(const checkpoint::HfConfig& files, const MediaOptions& media);

}  // namespace fovea::deepseek_ocr
