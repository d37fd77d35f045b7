#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/json.h"
#include "models/common/grid/smart_resize.h"
#include "models/common/views/tiles.h"

namespace fovea::common {

// Canvases of square views, on which an image keeps its ratio and is centred; the rows of the
// padding beside it are left out. Source: docs/reference/llava.md, "Canvases" and "Rows".

/// Sizes of canvases, each of whole views, in the order of a file.
/// @param list of pairs (height, width) in pixels.
/// @throws Error(kCorruptData) for anything but pairs of sizes, and for none, Error(kUnsupported)
/// for a size that is not a multiple of view_px, and for more than 2^26 pixels.
[[nodiscard]] std::vector<Tiling> read_canvases(const JsonView& list, std::int64_t view_px);

/// The canvas on which most pixels of an image remain; among equal ones the smallest, then the
/// first.
[[nodiscard]] Tiling best_canvas(const Size2d& image, std::span<const Tiling> canvases,
                                 std::int64_t view_px);

/// The size of an image that fills a canvas along one axis.
[[nodiscard]] Size2d fitted_size(const Size2d& image, const Size2d& canvas);

/// Rows of a grid that are left of it. Both ranges may be empty.
struct Window {
  std::int64_t top = 0;
  std::int64_t left = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;

  friend bool operator==(const Window&, const Window&) = default;
};

/// The rows of a canvas that show the image.
struct CanvasRows {
  Tiling canvas;
  Window window;  ///< of the rows of all views
  Size2d grid;    ///< the size of the window, or a smaller one that it is resized to

  [[nodiscard]] bool is_shrunk() const { return grid != Size2d{window.height, window.width}; }
};

/// @param view_side rows a side of a view.
/// @param max_views windows with many more rows than this number of views are shrunk; 0: none are.
/// @throws Error(kInvalidArgument) for a window that is too narrow to be shrunk.
[[nodiscard]] CanvasRows canvas_rows(const Size2d& image, const Tiling& canvas,
                                     std::int64_t view_side, std::int64_t max_views);

}  // namespace fovea::common
