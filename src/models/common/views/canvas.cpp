// Which canvas an image is put on, and which of its rows remain: the arithmetic of the reference in
// double.
#include "models/common/views/canvas.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/check.h"
#include "models/common/config_reader.h"

namespace fovea::common {

namespace {

double ratio(std::int64_t a, std::int64_t b) {
  return static_cast<double>(a) / static_cast<double>(b);
}

std::int64_t scaled(std::int64_t side, double scale) {
  return static_cast<std::int64_t>(static_cast<double>(side) * scale);
}

/// int(round(side * scale, 7)): rounded down, but for what is within half of 1e-7 of the next.
std::int64_t nearly_scaled(std::int64_t side, double scale) {
  return static_cast<std::int64_t>(std::floor(static_cast<double>(side) * scale + 5e-8));
}

/// a // b of Python for positive numbers: the quotient is rounded down before it is rounded.
std::int64_t floor_quotient(double a, double b) {
  return static_cast<std::int64_t>(std::nearbyint((a - std::fmod(a, b)) / b));
}

/// The rows of a canvas that show the image, not its padding. @param grid rows of the canvas.
Window unpadded(const Size2d& image, const Size2d& grid) {
  const double aspect = ratio(image.width_px, image.height_px);
  Window w{.height = grid.height_px, .width = grid.width_px};
  if (aspect > ratio(grid.width_px, grid.height_px)) {
    const double scale = ratio(grid.width_px, image.width_px);
    w.top = (grid.height_px - nearly_scaled(image.height_px, scale)) / 2;
    w.height -= 2 * w.top;
  } else {
    const double scale = ratio(grid.height_px, image.height_px);
    w.left = (grid.width_px - nearly_scaled(image.width_px, scale)) / 2;
    w.width -= 2 * w.left;
  }
  return w;
}

/// The size of a window once it is shrunk to about `most` rows; its own if it has hardly more, or
/// `most` is 0.
Size2d shrunk(const Window& w, std::int64_t most) {
  const Size2d size{w.height, w.width};
  if (most == 0) return size;
  const double factor = std::sqrt(ratio(w.height * w.width, most));
  if (factor <= 1.1) return size;
  const Size2d result{floor_quotient(static_cast<double>(w.height), factor),
                      floor_quotient(static_cast<double>(w.width), factor)};
  FOVEA_CHECK(result.height_px >= 1 && result.width_px >= 1, kInvalidArgument, "an image of ",
              w.width, "x", w.height, " rows is too narrow to be shrunk to ", most, " rows");
  return result;
}

}  // namespace

std::vector<Tiling> read_canvases(const JsonView& list, std::int64_t view_px) {
  constexpr std::int64_t kMostPixels = std::int64_t{1} << 26;
  std::vector<Tiling> canvases;
  for (const JsonView& entry : list.elements()) {
    const std::vector<JsonView> sides = elements_of(entry, 2);
    const Size2d size{as_size(sides[0]), as_size(sides[1])};
    const Tiling tiling{.cols = size.width_px / view_px, .rows = size.height_px / view_px};
    FOVEA_CHECK(size.width_px % view_px == 0 && size.height_px % view_px == 0, kUnsupported,
                entry.path(), ": ", size.height_px, "x", size.width_px,
                " is not a multiple of views of ", view_px, " pixels");
    FOVEA_CHECK(size.width_px * size.height_px <= kMostPixels, kUnsupported, entry.path(),
                ": expected at most ", kMostPixels, " pixels, got ", size.height_px, "x",
                size.width_px);
    canvases.push_back(tiling);
  }
  FOVEA_CHECK(!canvases.empty(), kCorruptData, list.path(), ": expected at least one size");
  return canvases;
}

Tiling best_canvas(const Size2d& image, std::span<const Tiling> canvases, std::int64_t view_px) {
  Tiling best = canvases.front();
  std::int64_t most_kept = 0;
  std::int64_t least_wasted = std::numeric_limits<std::int64_t>::max();
  for (const Tiling& canvas : canvases) {
    const Size2d size{canvas.rows * view_px, canvas.cols * view_px};
    const double scale =
        std::min(ratio(size.width_px, image.width_px), ratio(size.height_px, image.height_px));
    const std::int64_t kept =
        std::min(scaled(image.width_px, scale) * scaled(image.height_px, scale),
                 image.width_px * image.height_px);
    const std::int64_t wasted = size.width_px * size.height_px - kept;
    if (kept < most_kept || (kept == most_kept && wasted >= least_wasted)) continue;
    best = canvas;
    most_kept = kept;
    least_wasted = wasted;
  }
  return best;
}

Size2d fitted_size(const Size2d& image, const Size2d& canvas) {
  const double by_width = ratio(canvas.width_px, image.width_px);
  const double by_height = ratio(canvas.height_px, image.height_px);
  const auto grown = [](std::int64_t side, double scale, std::int64_t most) {
    return std::min(static_cast<std::int64_t>(std::ceil(static_cast<double>(side) * scale)), most);
  };
  if (by_width < by_height) {
    return {grown(image.height_px, by_width, canvas.height_px), canvas.width_px};
  }
  return {canvas.height_px, grown(image.width_px, by_height, canvas.width_px)};
}

CanvasRows canvas_rows(const Size2d& image, const Tiling& canvas, std::int64_t view_side,
                       std::int64_t max_views) {
  CanvasRows rows{.canvas = canvas,
                  .window = unpadded(image, {canvas.rows * view_side, canvas.cols * view_side}),
                  .grid = {}};
  rows.grid = shrunk(rows.window, max_views * view_side * view_side);
  return rows;
}

}  // namespace fovea::common
