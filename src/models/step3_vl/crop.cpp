// Which windows an image has. Divisions are done in double and compared as the reference does.
#include "models/step3_vl/processor.h"

#include <algorithm>

#include "core/check.h"
#include "models/common/frames.h"

namespace fovea::step3_vl {

namespace {

constexpr std::int64_t kMaxSide = 3024;
constexpr std::int64_t kWindow = 504;
constexpr std::int64_t kLarge = 728;       // longer side from which images have windows of kWindow
constexpr std::int64_t kMaxSquare = 8192;  // 192 MiB
constexpr std::int64_t kMaxWindows = 900;  // 2 GB of pixels

double ratio(std::int64_t a, std::int64_t b) {
  return static_cast<double>(a) / static_cast<double>(b);
}

/// Side of the windows of an image, 0 for none.
std::int64_t window_side(std::int64_t longer, std::int64_t shorter) {
  const double aspect = ratio(longer, shorter);
  if (longer < kLarge) return aspect > 1.5 ? shorter : 0;
  return aspect > 4 ? std::min(shorter, kWindow) : kWindow;
}

/// Length of an axis of n pixels once it holds whole windows; an axis below one window stays.
std::int64_t crop_size(std::int64_t n, std::int64_t window) {
  if (n < window) return n;
  const std::int64_t whole = n / window;
  const double rest = ratio(n, window) - static_cast<double>(whole);
  return (rest > 0.2 ? whole + 1 : whole) * window;
}

/// Limits the longer side.
void limit_size(Crop& crop) {
  const std::int64_t longer = std::max(crop.width_px, crop.height_px);
  if (longer <= kMaxSide) return;
  const double factor = ratio(kMaxSide, longer);
  for (std::int64_t* const side : {&crop.width_px, &crop.height_px}) {
    *side = static_cast<std::int64_t>(static_cast<double>(*side) * factor);
  }
}

}  // namespace

Crop plan_crop(std::int64_t width_px, std::int64_t height_px, bool windows) {
  common::check_area(width_px, height_px);
  Crop crop{.width_px = width_px, .height_px = height_px};
  const double aspect = ratio(width_px, height_px);
  if (std::min(width_px, height_px) < 32 && (aspect > 4 || aspect < 0.25)) {
    crop.square_px = std::max(width_px, height_px);
    crop.width_px = crop.height_px = crop.square_px;
  }
  FOVEA_CHECK(crop.square_px <= kMaxSquare, kInvalidArgument, "image of ", width_px, "x", height_px,
              " pixels would be padded to a square, at most of side ", kMaxSquare);
  limit_size(crop);
  const auto [shorter, longer] = std::minmax({crop.width_px, crop.height_px});
  FOVEA_CHECK(shorter >= 1, kInvalidArgument, "image of ", width_px, "x", height_px,
              " pixels is too thin: limited to ", kMaxSide, " pixels it would vanish");
  crop.window_px = windows ? window_side(longer, shorter) : 0;
  if (crop.window_px == 0) return crop;
  crop.crop_width_px = crop_size(crop.width_px, crop.window_px);
  crop.crop_height_px = crop_size(crop.height_px, crop.window_px);
  crop.windows = {.cols = std::max<std::int64_t>(1, crop.crop_width_px / crop.window_px),
                  .rows = std::max<std::int64_t>(1, crop.crop_height_px / crop.window_px)};
  const std::int64_t count = crop.windows.count();
  FOVEA_CHECK(count <= kMaxWindows, kInvalidArgument, "image of ", width_px, "x", height_px,
              " pixels has ", count, " windows, at most ", kMaxWindows);
  return crop;
}

}  // namespace fovea::step3_vl
