#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fovea::media {

/// Bytes of a grey level that is no whole number: l = b0 + b1 / 256 + b2 / 65536.
inline constexpr std::size_t kLevelBytes = 3;

struct ResizeFineArgs {
  std::span<const std::uint8_t> src;  ///< src_height_px * src_width_px * 3, interleaved RGB
  std::int64_t src_width_px;
  std::int64_t src_height_px;
  std::span<std::uint8_t> dst;  ///< [kLevelBytes, dst_height_px, dst_width_px, 3]; no overlap
  std::int64_t dst_width_px;
  std::int64_t dst_height_px;
};

/// Antialiased bilinear resize of RGB in floats, as references do that resize after they normalise:
/// filter weights and sums in f32, horizontal pass, then vertical, no rounding to bytes between or
/// after. Since the weights of a pixel add up to 1, normalising the result gives what resizing the
/// normalised image gives, up to 1e-6. An image that keeps its size keeps its bytes. Runs on the
/// calling thread and checks its interrupt between rows. Memory beside the arguments: the source
/// rows of one result row, dst_width_px * 12 bytes each, and the filter weights.
/// @throws Error(kInvalidArgument) if a side is < 1 or a span has the wrong size.
/// Source: docs/reference/image_resize.md, "Resize in floats".
void resize_rgb_fine(const ResizeFineArgs& args);

}  // namespace fovea::media
