#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "media/resize/leaf.h"
#include "media/resize/resize.h"

namespace fovea::media {

/// The fixed-point filter of one axis:
///   out[i] = clamp((2^(shift-1) + sum_j weight[i * taps + j] * in[first[i] + j]) >> shift, 0, 255)
/// in 32-bit arithmetic, for 0 <= j < count[i]; first[i] never decreases.
struct AxisWeights {
  std::int64_t in_size = 0;
  std::int64_t out_size = 0;
  std::int64_t taps = 0;       ///< per output pixel, padding included; a multiple of kTapGroup
  std::int64_t max_count = 0;  ///< largest count
  int shift = 0;
  std::vector<std::int32_t> first;   ///< [padded out_size], 0 in the padding
  std::vector<std::int32_t> count;   ///< [padded out_size], 0 in the padding
  std::vector<std::int32_t> weight;  ///< [padded out_size, taps]
  /// `weight` as 16-bit planes for multiply-add of 16-bit pairs. One plane if the weights fit 16
  /// bits; else weight = planes[0] * 2^kLowPlaneBits + planes[1] with 0 <= planes[1] <
  /// 2^kLowPlaneBits.
  std::vector<std::int16_t> planes[2];
};

/// The part of an axis that is resized: all but what lies beyond the picture, in pixels.
struct AxisMargins {
  double before_px = 0;
  double after_px = 0;

  friend bool operator==(const AxisMargins&, const AxisMargins&) = default;
};

/// Computes the filter of an axis that is resized from in_size to out_size pixels, both >= 1.
/// Double arithmetic in the order of the references; 22-bit (Pillow) or 16-bit (torchvision) fixed
/// point.
/// Source: docs/reference/image_resize.md, "Axis weights", "Pillow weights" and "Torchvision
/// weights".
[[nodiscard]] AxisWeights make_axis_weights(std::int64_t in_size, std::int64_t out_size,
                                            ResizeEngine engine, ResizeFilter filter,
                                            const AxisMargins& margins = {});

}  // namespace fovea::media
