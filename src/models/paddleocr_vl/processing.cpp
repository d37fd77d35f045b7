// Host side of PaddleOCR-VL: limits of areas count the pixels of an image, whose sides are first
// made one token long at least.
#include <cmath>

#include "models/common/frames.h"
#include "models/common/grid/processor_file.h"
#include "models/paddleocr_vl/config.h"

namespace fovea::paddleocr_vl {

namespace {

/// Source: transformers 5.24, paddleocr_vl/image_processing_paddleocr_vl.py.
constexpr common::ProcessorClasses kClasses{.image = {.range = {384 * 384, 1536 * 1536},
                                                      .scaling = common::kClipScaling,
                                                      .overrides_size = true}};

/// A side that grows as another one does, from `from` to `to`; quotients are rounded half to even.
std::int64_t grown(std::int64_t side, std::int64_t from, std::int64_t to) {
  return static_cast<std::int64_t>(
      std::nearbyint(static_cast<double>(side * to) / static_cast<double>(from)));
}

common::Size2d resized_size(std::int64_t height_px, std::int64_t width_px, std::int64_t factor,
                            common::PixelRange range) {
  common::check_area(width_px, height_px);
  common::Size2d size{height_px, width_px};
  if (size.height_px < factor) size = {factor, grown(size.width_px, size.height_px, factor)};
  if (size.width_px < factor) size = {grown(size.height_px, size.width_px, factor), factor};
  return common::smart_resize_image(size.height_px, size.width_px, factor, range);
}

}  // namespace

common::GridProcessing read_processing(const checkpoint::HfConfig& files,
                                       const common::GridGeometry& grid,
                                       const MediaOptions& media) {
  common::GridProcessing p{.geometry = grid, .row_major_values = true};
  common::read_grid_processor(files, kClasses, media, p);
  p.image_size = [factor = grid.resize_factor(), range = p.limits.image](std::int64_t height_px,
                                                                         std::int64_t width_px) {
    return resized_size(height_px, width_px, factor, range);
  };
  return p;
}

}  // namespace fovea::paddleocr_vl
