#pragma once

#include <cstdint>

#include "models/common/views/tiles.h"

namespace fovea::step3_vl {

/// What becomes of an image before it is cut, and its windows.
struct Crop {
  std::int64_t square_px = 0;  ///< side of a black square with the image in its corner; 0: none
  std::int64_t width_px = 0;   ///< of the image, or the square, once its longer side is limited
  std::int64_t height_px = 0;
  std::int64_t window_px = 0;  ///< side of the windows; 0: the image has none
  common::Tiling windows{.cols = 0, .rows = 0};
  std::int64_t crop_width_px = 0;   ///< size that windows are cut from, which may be smaller than a
  std::int64_t crop_height_px = 0;  ///< window
};

/// @param windows whether images have windows at all.
/// @throws Error(kInvalidArgument) for an image without area, one whose shorter side vanishes when
/// the longer one is limited, and one whose square or windows would fill the memory.
/// Source: docs/reference/step3_vl.md, "Windows".
[[nodiscard]] Crop plan_crop(std::int64_t width_px, std::int64_t height_px, bool windows);

}  // namespace fovea::step3_vl
