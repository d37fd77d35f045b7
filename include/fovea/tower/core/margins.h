#pragma once

namespace fovea {

/// Parts of pixels at the edges of an image that its picture does not fill, each from 0 to below 1
/// pixel. A JPEG file of 9 columns, decoded at half of its size, fills 4.5 of 5 columns.
struct Margins {
  double left_px = 0;
  double top_px = 0;
  double right_px = 0;
  double bottom_px = 0;
};

}  // namespace fovea
