#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fovea/tower/models/item_processor.h"
#include "media/image.h"
#include "media/resize/resize.h"
#include "media/resize/resize_fine.h"

namespace fovea::common {

// Frames on the host, on their way from a decoder to the pixels of an item.

/// @throws Error(kInvalidArgument) for an image without area.
void check_area(std::int64_t width_px, std::int64_t height_px);

/// Requires a frame that an item was planned for, at full size or at a fraction that the plan
/// allows, and room for all its pixels.
/// @throws Error(kInvalidArgument) for another index or size, Error(kInternal) if `out` has another
/// size.
void check_frame(const ItemPlan& plan, std::int64_t index, const RgbView& frame,
                 std::span<const std::uint8_t> out);

[[nodiscard]] inline RgbView view_of(const media::Image& image) {
  return {image.rgb.data(), image.width_px, image.height_px, image.margins};
}

/// Lets an item of one path have `units` equal units and `rows` rows, instead of those of its
/// views.
/// @param plan with the pixels and input rows of the whole item.
/// @throws Error(kInvalidArgument) for more pixels than a unit can have.
void set_units(std::int64_t units, std::int64_t rows, ItemPlan& plan);

/// Resizes an image. @param out [height_px, width_px, 3], no overlap with the image.
void resize(RgbView image, std::int64_t width_px, std::int64_t height_px,
            media::ResizeEngine engine, media::ResizeFilter filter, std::span<std::uint8_t> out);

/// Resizes an image in floats, or keeps its size (media::resize_rgb_fine).
/// @param out [media::kLevelBytes, height_px, width_px, 3], no overlap with the image.
void resize_fine(const RgbView& image, std::int64_t width_px, std::int64_t height_px,
                 media::FineFilter filter, std::span<std::uint8_t> out);

/// As resize, into memory of its own.
[[nodiscard]] media::Image resized(RgbView image, std::int64_t width_px, std::int64_t height_px,
                                   media::ResizeEngine engine,
                                   media::ResizeFilter filter = media::ResizeFilter::kBicubic);

/// Copies an image to (left_px, top_px) of a canvas, where it fits.
/// @param canvas [height, canvas_width_px, 3], no overlap with the image.
void paste(RgbView image, std::int64_t left_px, std::int64_t top_px, std::int64_t canvas_width_px,
           std::span<std::uint8_t> canvas);

/// A grey canvas with an image at (left_px, top_px) of it, where it fits. @param level of all
/// channels.
[[nodiscard]] media::Image on_canvas(RgbView image, std::int64_t left_px, std::int64_t top_px,
                                     std::int64_t width_px, std::int64_t height_px,
                                     std::uint8_t level);

/// linspace(first, last, count)[i], as NumPy computes it.
[[nodiscard]] double spaced(double first, double last, std::int64_t count, std::int64_t i);

/// The number of frames that an item asks for.
/// @throws Error(kInvalidArgument) for none, and for more than the video has.
[[nodiscard]] std::int64_t checked_count(std::int64_t num_frames, std::int64_t total);

/// Indices of `count` frames from `first` to `last`, evenly spaced and rounded down.
[[nodiscard]] std::vector<std::int64_t> spread_frames(std::int64_t first, std::int64_t last,
                                                      std::int64_t count);

/// Indices of `count` frames of `total`, at least 1: arange(0, total, total / count) of PyTorch in
/// f32, rounded down.
[[nodiscard]] std::vector<std::int64_t> stepped_frames(std::int64_t total, std::int64_t count);
/// The same in other steps, none beyond the last frame: arange(0, total, step).
[[nodiscard]] std::vector<std::int64_t> stepped_frames(std::int64_t total, std::int64_t count,
                                                       double step);

/// The number of frames of `total` at about `target_fps`: total / fps * target_fps, rounded down,
/// and at least 1.
[[nodiscard]] std::int64_t frames_at(std::int64_t total, double fps, double target_fps);

/// Indices of at most `most` frames of a video, evenly spaced from its first to its last, at
/// about `target_fps` if its rate is known. @param video_fps 0 if it is not.
[[nodiscard]] std::vector<std::int64_t> sample_evenly(std::int64_t total_frames, double video_fps,
                                                      double target_fps, std::int64_t most);

/// Refuses a sub-batch whose pixels the patch sources, 32-bit offsets, do not reach.
/// @param pixel_bytes of all its items together, on one path.
/// @throws Error(kInvalidArgument) with both numbers.
void check_pixel_offsets(std::int64_t pixel_bytes, std::size_t num_items);

}  // namespace fovea::common
