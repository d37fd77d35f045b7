#pragma once

#include <cstddef>
#include <cstdint>

namespace fovea::common {

/// The ways in which the frames of a temporal patch enter a tower.
enum class FrameUse : std::uint8_t {
  kJoined,    ///< a patch is that of all frames; a single frame is repeated
  kApart,     ///< every frame has patches and a sequence of its own; an odd last one counts twice
  kTogether,  ///< every frame has patches of its own, all in one sequence, which may be shorter
};

/// How frames become patches, and patches become tokens. A temporal patch makes one grid of tokens.
struct GridGeometry {
  std::int64_t patch_size = 16;          ///< pixels a side
  std::int64_t spatial_merge_size = 2;   ///< patches a side of a token
  std::int64_t temporal_patch_size = 2;  ///< frames of a temporal patch
  FrameUse frames = FrameUse::kJoined;

  /// Patches of a token.
  [[nodiscard]] std::int64_t merge_area() const { return spatial_merge_size * spatial_merge_size; }
  /// Frames that a patch covers, and frames of a temporal patch that have patches of their own.
  [[nodiscard]] std::int64_t patch_frames() const {
    return frames == FrameUse::kJoined ? temporal_patch_size : 1;
  }
  [[nodiscard]] std::int64_t frames_apart() const { return temporal_patch_size / patch_frames(); }
  /// Values of a patch: channels x frames x height x width.
  [[nodiscard]] std::int64_t patch_dim() const {
    return 3 * patch_frames() * patch_size * patch_size;
  }
  /// Pixels a side of a token: resized sides are multiples of it.
  [[nodiscard]] std::int64_t resize_factor() const { return patch_size * spatial_merge_size; }
};

/// A square view of an image, cut into patches without overlap.
struct SquareView {
  std::int64_t side_px = 0;
  std::int64_t patch_px = 0;
  std::int64_t merge = 1;   ///< patches a side of a token that is made of neighbouring rows
  std::int64_t stride = 1;  ///< patches a side of a token that convolutions of this stride make
  std::int64_t planes = 1;  ///< images that make the view, which ops::patchify reads as frames:
                            ///< more than 1 where a pixel has several bytes

  [[nodiscard]] std::int64_t grid() const { return side_px / patch_px; }  ///< patches a side
  [[nodiscard]] std::int64_t patches() const { return grid() * grid(); }
  [[nodiscard]] std::int64_t tokens_side() const { return grid() / (merge * stride); }
  [[nodiscard]] std::int64_t tokens() const { return tokens_side() * tokens_side(); }
  [[nodiscard]] std::int64_t plane_bytes() const { return side_px * side_px * 3; }
  [[nodiscard]] std::size_t pixel_bytes() const {
    return static_cast<std::size_t>(planes * plane_bytes());
  }
};

/// Calls visit(y, x) for every patch of a view in the order of its rows: tokens row-major, and
/// inside a token its patches row-major.
template <class Visit>
void for_each_patch(const SquareView& view, const Visit& visit) {
  for (std::int64_t top = 0; top < view.grid(); top += view.merge) {
    for (std::int64_t left = 0; left < view.grid(); left += view.merge) {
      for (std::int64_t y = top; y < top + view.merge; ++y) {
        for (std::int64_t x = left; x < left + view.merge; ++x) visit(y, x);
      }
    }
  }
}

}  // namespace fovea::common
