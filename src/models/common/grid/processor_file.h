#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "checkpoint/hf_config.h"
#include "fovea/options.h"
#include "models/common/grid/processor.h"

namespace fovea::common {

/// The defaults of a class of the reference that reads a processor file.
struct ProcessorClass {
  PixelRange range;
  PixelScaling scaling;
  bool overrides_size = false;  ///< min_pixels and max_pixels beside `size` count, and before it
  bool always_bicubic = false;  ///< the filter is bicubic, whatever `resample` says
  /// Pixels of a token, in the unit of `range`, where min_image_tokens and max_image_tokens are the
  /// limits and `size` says nothing; 0: the limits are in `size`.
  std::int64_t token_pixels = 0;
  std::span<const std::string_view> more{};  ///< keys that the family reads besides, for the log
};

/// Those of images and of videos.
struct ProcessorClasses {
  ProcessorClass image;
  ProcessorClass video{};  ///< without a range: the family takes none

  [[nodiscard]] constexpr bool has_videos() const { return video.range.max_pixels > 0; }
};

/// Reads what the processor files of all families over grids say, in all spellings, into limits,
/// scaling, engine, filter, refusal of videos, assumptions and sources of `processing`. The file of
/// images serves videos too where they have none.
/// @param media its limits and resize backend come before those of the files.
/// @param processing with the geometry of the tower, which the files must not contradict.
/// @throws Error(kCorruptData) for wrong types, factors that are not above 0, other sizes than
/// those of the geometry, and a `size` of images without one of its edges; Error(kUnsupported) for
/// steps that are switched off; Error(kInvalidArgument) for impossible limits in `media`. Such a
/// `size` of videos, and values of theirs that differ from those of images, are no error but
/// processing.video_refusal.
/// Source: docs/reference/qwen_glm.md, "Processor files".
void read_grid_processor(const checkpoint::HfConfig& files, const ProcessorClasses& classes,
                         const MediaOptions& media, GridProcessing& processing);

/// Bounds of sampled frames, as the video processor files name them.
struct VideoBounds {
  std::int64_t min_frames = 4;
  std::int64_t max_frames = 768;
  bool cap_pixels_per_frame = false;  ///< limits frames to a share of max_video_tokens
  std::int64_t max_video_tokens = 768;
  double max_fps = std::numeric_limits<double>::infinity();  ///< frames sampled per second
  std::optional<std::int64_t> num_frames = {};  ///< of an item: in the place of all of them
};

/// ItemOptionKeys of images of classes with overrides_size, which take limits beside `size`.
inline constexpr std::array<std::string_view, 3> kPixelOptions{"size", "min_pixels", "max_pixels"};
/// Those of videos, where frames are sampled in whole temporal patches.
inline constexpr std::array<std::string_view, 7> kFrameVideoOptions{
    "size", "min_pixels", "max_pixels", "fps", "num_frames", "min_frames", "max_frames"};
/// Those of classes that take `size` alone.
inline constexpr std::array<std::string_view, 1> kSizeOption{"size"};

inline constexpr std::array<std::string_view, 4> kVideoBoundKeys{
    "min_frames", "max_frames", "cap_pixels_per_frame", "max_video_tokens"};

/// The bounds in the processor file of videos; `defaults` where it is silent. The loaders of
/// vLLM 0.33 for Qwen2-VL and Qwen3-VL sample at most 30 frames per second, whatever is asked for;
/// the processors of transformers 5.24 have no such bound.
/// @param media whose profile says which of them is reproduced.
/// @throws Error(kCorruptData) for bounds that are no positive numbers.
[[nodiscard]] VideoBounds read_video_bounds(const checkpoint::HfConfig& files,
                                            const MediaOptions& media, VideoBounds defaults);

/// Frames per second of a file that does not say its rate.
inline constexpr double kUnknownFps = 24.0;

/// Processing whose limits count the pixels of one image, or of one frame of a video: sizes,
/// sampling and scaling from the processor files. Frames are sampled in whole temporal patches.
/// @throws as read_grid_processor and read_video_bounds.
/// Source: docs/reference/qwen2_vl.md, "Processing" and "Sampled frames".
[[nodiscard]] GridProcessing read_frame_processing(const checkpoint::HfConfig& files,
                                                   const GridGeometry& grid,
                                                   const MediaOptions& media);

}  // namespace fovea::common
