// Host side of Qwen3-VL and most that have its tower: limits of areas count pixels of an image, and
// frames times pixels of a video; sampled frames are spread evenly from the first to the last.
#include "models/qwen3_vl/config.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/frames.h"
#include "models/common/grid/processor_file.h"

namespace fovea::qwen3_vl {

namespace {

using common::VideoBounds;

/// The limits of a video's area once frames are limited one by one.
common::PixelRange capped(const VideoBounds& bounds, common::PixelRange range,
                          std::int64_t num_frames, std::int64_t factor) {
  if (!bounds.cap_pixels_per_frame || num_frames < 1) return range;
  const std::int64_t per_frame =
      std::min(bounds.max_video_tokens * factor * factor, range.max_pixels / num_frames);
  const auto floor = static_cast<std::int64_t>(1.05 * static_cast<double>(range.min_pixels));
  range.max_pixels = num_frames * std::max(per_frame, floor);
  return range;
}

/// From the first frame to the last: linspace(0, total - 1, count), rounded half to even.
std::vector<std::int64_t> linspace_frames(std::int64_t total_frames, std::int64_t count) {
  const double step =
      count == 1 ? 0.0 : static_cast<double>(total_frames - 1) / static_cast<double>(count - 1);
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < count; ++i) {
    indices.push_back(static_cast<std::int64_t>(std::nearbyint(static_cast<double>(i) * step)));
  }
  return indices;
}

/// Frames at about `target_fps`. An unknown rate counts as 24.
std::vector<std::int64_t> sample_frames(const VideoBounds& bounds, std::int64_t total_frames,
                                        double video_fps, double target_fps) {
  if (bounds.num_frames) {
    return linspace_frames(total_frames, common::checked_count(*bounds.num_frames, total_frames));
  }
  constexpr double kAbsurd = 1e9;  // keeps the count an integer for any rate
  const double fps = video_fps > 0 ? video_fps : common::kUnknownFps;
  const double rate = std::min(target_fps, bounds.max_fps);
  const double wanted = std::min(static_cast<double>(total_frames) / fps * rate, kAbsurd);
  std::int64_t count = std::max(static_cast<std::int64_t>(wanted), bounds.min_frames);
  return linspace_frames(total_frames, std::min({count, bounds.max_frames, total_frames}));
}

/// The classes that read the files. Without a file the reference has none, and what the released
/// checkpoints say is assumed.
/// Source: transformers 5.24, qwen2_vl/image_processing_qwen2_vl.py, whose class reads the files of
/// images here, too, and qwen3_vl/video_processing_qwen3_vl.py.
common::ProcessorClasses classes_for(const checkpoint::HfConfig& files) {
  common::ProcessorClasses classes{
      .image = {.range = {56 * 56, 28 * 28 * 1280},
                .scaling = common::kClipScaling,
                .overrides_size = true},
      .video = {
          .range = {128 * 32 * 32, 32 * 32 * 768}, .scaling = {}, .more = common::kVideoBoundKeys}};
  if (!files.image_processor()) {
    classes.image.range = {65536, 16777216};
    classes.image.scaling = {};
  }
  if (!files.video_processor()) classes.video.range = {4096, 25165824};
  return classes;
}

/// Alpamayo's limits of an image stand in config.json and count whatever the processor file says,
/// but not what an item says.
void read_own_limits(const checkpoint::HfConfig& files, const MediaOptions& media,
                     common::PixelRange& range) {
  const JsonView root = files.config.root();
  const auto is_given = [&](const char* key) {
    if (!files.item) return false;
    const JsonView given = files.item->given.root();
    return given.find("size") || given.find(key);
  };
  const auto read = [&](const char* key, bool is_option, std::int64_t fallback,
                        std::int64_t& limit) {
    if (!is_option && !is_given(key)) limit = common::read_size(root, key, fallback);
  };
  read("min_pixels", media.min_pixels.has_value(), 163840, range.min_pixels);
  read("max_pixels", media.max_pixels.has_value(), 196608, range.max_pixels);
  FOVEA_CHECK(range.min_pixels <= range.max_pixels, kCorruptData, root.path(),
              ": expected min_pixels <= max_pixels, got ", range.min_pixels, " and ",
              range.max_pixels);
}

}  // namespace

common::GridProcessing read_processing(const checkpoint::HfConfig& files,
                                       const common::GridGeometry& grid,
                                       const MediaOptions& media) {
  common::GridProcessing p{.geometry = grid};
  common::read_grid_processor(files, classes_for(files), media, p);
  if (files.architectures() == std::vector<std::string>{"Alpamayo2Super"}) {
    read_own_limits(files, media, p.limits.image);
  }
  const VideoBounds bounds = common::read_video_bounds(files, media, {});
  p.image_size = [factor = grid.resize_factor(), range = p.limits.image](std::int64_t height_px,
                                                                         std::int64_t width_px) {
    return common::smart_resize_image(height_px, width_px, factor, range);
  };
  p.video_size = [grid, bounds, range = p.limits.video](
                     std::int64_t num_frames, std::int64_t height_px, std::int64_t width_px) {
    const std::int64_t factor = grid.resize_factor();
    return common::smart_resize_video(num_frames, height_px, width_px, grid.temporal_patch_size,
                                      factor, capped(bounds, range, num_frames, factor));
  };
  p.sample_frames = [bounds](std::int64_t total, double video_fps, double target_fps) {
    return sample_frames(bounds, total, video_fps, target_fps);
  };
  p.timestamp = [](double first, double last) { return (first + last) / 2; };
  return p;
}

}  // namespace fovea::qwen3_vl
