#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/hf_config.h"
#include "fovea/options.h"
#include "media/normalize.h"
#include "media/resize.h"
#include "models/blocks/smart_resize.h"
#include "ops/linear.h"

namespace fovea::qwen3_vl {

/// The vision tower's fields of config.json, named as there (vision_config.*). Defaults are those
/// of the reference's configuration class.
struct Config {
  std::int64_t depth = 27;
  std::int64_t hidden_size = 1152;
  std::int64_t intermediate_size = 4304;
  std::int64_t num_heads = 16;
  std::int64_t in_channels = 3;
  std::int64_t patch_size = 16;
  std::int64_t spatial_merge_size = 2;
  std::int64_t temporal_patch_size = 2;
  std::int64_t out_hidden_size = 3584;
  std::int64_t num_position_embeddings = 2304;
  std::vector<std::int64_t> deepstack_visual_indexes;       ///< absent: [8, 16, 24], Qwen3.5: none
  double rope_theta = 10000.0;                              ///< rope_parameters.rope_theta
  ops::Activation hidden_act = ops::Activation::kGeluTanh;  ///< of the MLP; mergers have kGeluErf

  [[nodiscard]] std::int64_t head_dim() const { return hidden_size / num_heads; }
  [[nodiscard]] std::int64_t position_side() const;  ///< sqrt(num_position_embeddings)
  [[nodiscard]] std::int64_t merge_area() const { return spatial_merge_size * spatial_merge_size; }
  /// Columns of a patch row: channels x frames x height x width of a patch.
  [[nodiscard]] std::int64_t patch_dim() const {
    return in_channels * temporal_patch_size * patch_size * patch_size;
  }
  [[nodiscard]] std::int64_t num_deepstack() const {
    return static_cast<std::int64_t>(deepstack_visual_indexes.size());
  }
  /// Columns of an output row: the main embedding and the deepstack levels side by side.
  [[nodiscard]] std::int64_t out_width() const { return out_hidden_size * (1 + num_deepstack()); }
};

/// What the processor files say about pictures and videos.
struct PreprocessConfig {
  blocks::PixelRange image{65536, 16777216};  ///< height * width
  blocks::PixelRange video{4096, 25165824};   ///< frames * height * width
  bool cap_pixels_per_frame = false;          ///< limits frames to max_video_tokens each
  std::int64_t max_video_tokens = 768;
  std::int64_t min_frames = 4;    ///< of a sampled video
  std::int64_t max_frames = 768;  ///< of a sampled video
  std::array<float, 3> image_mean{0.5f, 0.5f, 0.5f};
  std::array<float, 3> image_std{0.5f, 0.5f, 0.5f};
  double rescale_factor = 1.0 / 255.0;
  media::ResizeEngine engine = media::ResizeEngine::kTorchvision;
  media::ResizeFilter filter = media::ResizeFilter::kBicubic;
};

/// Value of each byte per channel: the processor's rescaling and normalising.
[[nodiscard]] media::NormalizeTable normalize_table(const PreprocessConfig& preprocess);

/// Reads and validates vision_config.
/// @throws Error(kCorruptData) naming the key for wrong types, Error(kUnsupported) for values this
/// tower does not have (an unknown activation, other than 3 channels).
[[nodiscard]] Config parse_config(const checkpoint::HfConfig& files);

/// Reads the processor files; the class defaults where there are none.
/// @throws Error(kCorruptData) for wrong types, factors that are not above 0, or a patch_size or
/// merge_size that contradicts config.json; Error(kInvalidArgument) for impossible limits in
/// `media`.
[[nodiscard]] PreprocessConfig parse_preprocess_config(const checkpoint::HfConfig& files,
                                                       const Config& config,
                                                       const MediaOptions& media);

/// ModelFamily::assumptions. The processor file of pictures serves videos too where they have none
/// of their own.
[[nodiscard]] std::string assumptions(const checkpoint::HfConfig& files, const MediaOptions& media);

}  // namespace fovea::qwen3_vl
