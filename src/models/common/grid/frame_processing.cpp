// Limits of areas count the pixels of one image or frame; frames are sampled in even numbers,
// evenly from the first.
#include "models/common/grid/processor_file.h"

#include <algorithm>
#include <cmath>

#include "models/common/frames.h"

namespace fovea::common {

namespace {

/// Source: transformers 5.24, qwen2_vl/image_processing_qwen2_vl.py, video_processing_qwen2_vl.py.
constexpr ProcessorClasses kClasses{
    .image = {.range = {56 * 56, 28 * 28 * 1280}, .scaling = kClipScaling, .overrides_size = true},
    .video = {.range = {128 * 28 * 28, 28 * 28 * 768},
              .scaling = kClipScaling,
              .overrides_size = true,
              .more = kVideoBoundKeys}};

/// The limits of a frame once a video is limited as a whole: an even share of 90 % of
/// max_video_tokens.
PixelRange capped(const VideoBounds& bounds, PixelRange range, std::int64_t num_frames,
                  const GridGeometry& grid) {
  if (!bounds.cap_pixels_per_frame || num_frames < 1) return range;
  const std::int64_t token_pixels = grid.resize_factor() * grid.resize_factor();
  const auto total =
      static_cast<std::int64_t>(static_cast<double>(bounds.max_video_tokens * token_pixels) * 0.9);
  const auto floor = static_cast<std::int64_t>(1.05 * static_cast<double>(range.min_pixels));
  range.max_pixels =
      std::max(std::min(range.max_pixels, total * grid.temporal_patch_size / num_frames), floor);
  return range;
}

/// Frames at about `target_fps`, a whole number of temporal patches of them: arange(0, total,
/// total / count), truncated. An unknown rate counts as 24.
std::vector<std::int64_t> sample_frames(const VideoBounds& bounds, std::int64_t temporal_patch_size,
                                        std::int64_t total_frames, double video_fps,
                                        double target_fps) {
  const auto whole_patches = [&](double count) {
    const auto patch = static_cast<double>(temporal_patch_size);
    return std::floor(count / patch) * patch;
  };
  const auto total = static_cast<double>(total_frames);
  if (bounds.num_frames) {
    const auto patches =
        static_cast<double>(*bounds.num_frames) / static_cast<double>(temporal_patch_size);
    const auto frames = static_cast<std::int64_t>(std::nearbyint(patches)) * temporal_patch_size;
    return stepped_frames(total_frames, checked_count(frames, total_frames));
  }
  const double fps = video_fps > 0 ? video_fps : kUnknownFps;
  const double rate = std::min(target_fps, bounds.max_fps);
  const double most = whole_patches(std::min(static_cast<double>(bounds.max_frames), total));
  const double wanted =
      std::min({std::max(total / fps * rate, static_cast<double>(bounds.min_frames)), most, total});
  // A video of one frame, of which the reference takes none.
  const auto count = std::max<std::int64_t>(1, static_cast<std::int64_t>(whole_patches(wanted)));
  return stepped_frames(total_frames, count);
}

}  // namespace

GridProcessing read_frame_processing(const checkpoint::HfConfig& files, const GridGeometry& grid,
                                     const MediaOptions& media) {
  GridProcessing p{.geometry = grid};
  read_grid_processor(files, kClasses, media, p);
  const VideoBounds bounds = read_video_bounds(files, media, {.max_video_tokens = 128000});
  p.image_size = [factor = grid.resize_factor(), range = p.limits.image](std::int64_t height_px,
                                                                         std::int64_t width_px) {
    return smart_resize_image(height_px, width_px, factor, range);
  };
  p.video_size = [grid, bounds, range = p.limits.video](
                     std::int64_t num_frames, std::int64_t height_px, std::int64_t width_px) {
    return smart_resize_image(height_px, width_px, grid.resize_factor(),
                              capped(bounds, range, num_frames, grid));
  };
  p.sample_frames = [bounds, patch = grid.temporal_patch_size](std::int64_t total, double video_fps,
                                                               double target_fps) {
    return sample_frames(bounds, patch, total, video_fps, target_fps);
  };
  return p;
}

}  // namespace fovea::common
