#pragma once

#include <cstdint>
#include <vector>

#include "fovea/tower/core/margins.h"

namespace fovea::media {

/// A decoded image: interleaved 8-bit RGB, row-major, no padding between rows.
struct Image {
  std::int64_t width_px = 0;
  std::int64_t height_px = 0;
  std::vector<std::uint8_t> rgb;  ///< height_px * width_px * 3 bytes
  Margins margins = {};           ///< of an image decoded at a fraction of its size
};

}  // namespace fovea::media
