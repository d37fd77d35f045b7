// Host side of GLM-4.1V and its successors: limits of areas count frames times pixels, of images
// too; frames are sampled by time, in even numbers.
#include "models/glm4v/config.h"

#include <cmath>
#include <functional>
#include <string>

#include "models/common/config_reader.h"
#include "models/common/grid/processor_file.h"
#include "models/glm4v/sampling.h"
#include "models/registry.h"

namespace fovea::glm4v {

namespace {

constexpr std::array<std::string_view, 1> kVideoKeys{"max_duration"};

/// Source: transformers 5.24, glm4v/image_processing_glm4v.py, video_processing_glm4v.py and the
/// same of glm46v.
constexpr common::ProcessorClasses kClasses{
    .image = {.range = {112 * 112, 28 * 28 * 15000}, .scaling = common::kClipScaling},
    .video = {.range = {112 * 112, 28 * 28 * 60000},
              .scaling = common::kClipScaling,
              .more = kVideoKeys}};

/// Whether the checkpoint's video processor is that of GLM-4.6V, which GLM-OCR has, too.
bool samples_by_length(const checkpoint::HfConfig& files) {
  const auto video = files.video_processor();
  const std::string fallback(known_architecture(files));
  const std::string type = video ? video->string_or("video_processor_type", fallback) : fallback;
  return type.starts_with("Glm46V") || type.starts_with("GlmOcr");
}

}  // namespace

common::GridProcessing read_processing(const checkpoint::HfConfig& files,
                                       const common::GridGeometry& grid,
                                       const MediaOptions& media) {
  common::GridProcessing p{.geometry = grid};
  common::read_grid_processor(files, kClasses, media, p);
  const auto video = files.video_processor();
  const std::int64_t max_duration = video ? common::read_size(*video, "max_duration", 300) : 300;
  const auto sizes_within = [&grid](common::PixelRange range) {
    return [=](std::int64_t num_frames, std::int64_t height_px, std::int64_t width_px) {
      return common::smart_resize_video(num_frames, height_px, width_px, grid.temporal_patch_size,
                                        grid.resize_factor(), range);
    };
  };
  p.image_size = std::bind_front(sizes_within(p.limits.image), grid.temporal_patch_size);
  p.video_size = sizes_within(p.limits.video);
  p.sample_frames = [grid, max_duration, by_length = samples_by_length(files)](
                        std::int64_t total, double video_fps, double target_fps) {
    const Clip clip(total, video_fps);
    return by_length ? sample_by_length(clip, grid.temporal_patch_size)
                     : sample_at_rate(clip, max_duration, target_fps);
  };
  p.timestamp = [](double first, double) { return std::floor(first); };
  return p;
}

}  // namespace fovea::glm4v
