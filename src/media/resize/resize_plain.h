#pragma once

#include <cstdint>
#include <span>

namespace fovea::media {

struct ResizePlainArgs {
  std::span<const std::uint8_t> src;  ///< src_height_px * src_width_px * 3, interleaved RGB
  std::int64_t src_width_px;
  std::int64_t src_height_px;
  std::span<std::uint8_t> dst;  ///< dst_height_px * dst_width_px * 3; no overlap
  std::int64_t dst_width_px;
  std::int64_t dst_height_px;
};

/// Bilinear resize of 8-bit RGB without antialiasing, as references do that resize floats of bytes
/// and round: four neighbours of every pixel whatever the scale, weights and sums in f32, rounded
/// half to even. Runs on the calling thread and checks its interrupt between rows.
/// @throws Error(kInvalidArgument) if a side is < 1 or a span has the wrong size.
/// Source: docs/reference/image_resize.md, "Resize without antialiasing".
void resize_rgb_plain(const ResizePlainArgs& args);

}  // namespace fovea::media
