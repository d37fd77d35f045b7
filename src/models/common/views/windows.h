#pragma once

#include <cstdint>
#include <span>

#include "fovea/tower/models/encoder_graph_model.h"
#include "models/common/views/tiles.h"

namespace fovea::common {

/// Which windows a family cuts out of images.
struct WindowRule {
  std::int64_t most_side_px = 3024;  ///< longer sides are limited to it
  std::int64_t window_px = 504;
  std::int64_t most_small_px = 728;  ///< longest side of images that have windows only if their
                                     ///< sides differ by more than half
  /// Whether a fifth of a window, which adds one, is compared as a part of a window, or in pixels.
  bool compares_parts = false;
};

/// The size of an image before it is cut, and its windows.
struct Crop {
  std::int64_t square_px = 0;  ///< side of a black square with the image in its corner; 0: none
  std::int64_t width_px = 0;   ///< of the image, or the square, once its longer side is limited
  std::int64_t height_px = 0;
  std::int64_t window_px = 0;  ///< side of the windows; 0: the image has none
  Tiling windows{.cols = 0, .rows = 0};
  std::int64_t crop_width_px = 0;   ///< size that windows are cut from, which may be smaller than a
  std::int64_t crop_height_px = 0;  ///< window
};

/// @param windows whether images have windows at all.
/// @throws Error(kInvalidArgument) for an image without area, one whose shorter side vanishes when
/// the longer one is limited, and one whose square or windows would fill the memory.
/// Source: docs/reference/step3_vl.md, "Windows".
[[nodiscard]] Crop plan_crop(const WindowRule& rule, std::int64_t width_px, std::int64_t height_px,
                             bool windows);

/// EncoderGraphModel::assemble of a family whose items have the rows of their windows, then those
/// of the whole image. @param whole whether the path is that of whole images.
void assemble_windows(ExecContext& ctx, bool whole, TensorView rows,
                      std::span<const ItemPart> parts, std::span<const TensorView> out);

}  // namespace fovea::common
