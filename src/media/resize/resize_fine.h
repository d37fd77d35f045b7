#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fovea::media {

/// Bytes of a grey level that is no whole number.
inline constexpr std::size_t kLevelBytes = 3;

/// The meaning of the bytes of a level: l = first + step (b0 + b1 / 256 + b2 / 65536).
struct LevelScale {
  float first = 0;
  float step = 1;
};

/// Filters of floats, named by the modes of torch.nn.functional.interpolate.
enum class FineFilter : std::uint8_t {
  kBilinear,      ///< antialiased
  kBicubic,       ///< antialiased, a = -0.5
  kPlainBicubic,  ///< a = -0.75, the edge stands for what is beyond it
};

/// Bicubic filters leave the range of bytes, to -72 and 327 antialiased, to -114 and 369 plain.
[[nodiscard]] constexpr LevelScale level_scale(FineFilter filter) {
  return filter == FineFilter::kBilinear ? LevelScale{} : LevelScale{.first = -128, .step = 2};
}

struct ResizeFineArgs {
  std::span<const std::uint8_t> src;  ///< src_height_px * src_width_px * 3, interleaved RGB
  std::int64_t src_width_px;
  std::int64_t src_height_px;
  std::span<std::uint8_t> dst;  ///< [kLevelBytes, dst_height_px, dst_width_px, 3]; no overlap
  std::int64_t dst_width_px;
  std::int64_t dst_height_px;
  FineFilter filter = FineFilter::kBilinear;
};

/// Resize of RGB in floats, as references do that resize after they normalise, or before without
/// rounding: filter weights and sums in f32, horizontal pass, then vertical, no rounding to bytes
/// and no clipping between or after. Levels are written in the level_scale() of the filter, to
/// step / 65536. Since the weights of a pixel add up to 1, normalising the result gives what
/// resizing the normalised image gives, up to 1e-6. An image that keeps its size keeps its levels.
/// Runs on the calling thread and checks its interrupt between rows. Memory beside the arguments:
/// the source rows of one result row, dst_width_px * 12 bytes each, and the filter weights.
/// @throws Error(kInvalidArgument) if a side is < 1 or a span has the wrong size.
/// Source: docs/reference/image_resize.md, "Resize in floats".
void resize_rgb_fine(const ResizeFineArgs& args);

}  // namespace fovea::media
