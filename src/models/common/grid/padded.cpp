// Images and frames on black canvases.
#include "models/common/grid/padded.h"

#include <utility>

#include "models/common/frames.h"

namespace fovea::common {

namespace {

/// The size of a canvas for `content`.
ContentSize canvas_of(const GridGeometry& geometry, ContentSize content,
                      std::int64_t most_grid_side) {
  return [=](std::int64_t height_px, std::int64_t width_px) {
    check_area(width_px, height_px);
    const Size2d inner = content(height_px, width_px);
    const std::int64_t factor = geometry.resize_factor();
    const auto padded = [&](std::int64_t side) { return (side + factor - 1) / factor * factor; };
    const Size2d canvas{padded(inner.height_px), padded(inner.width_px)};
    check_grid_sides(canvas.height_px / geometry.patch_size, canvas.width_px / geometry.patch_size,
                     most_grid_side);
    return canvas;
  };
}

}  // namespace

void pad_to_tokens(GridProcessing& processing, ContentSize image, ContentSize video) {
  GridProcessing& p = processing;
  p.image_size = canvas_of(p.geometry, image, p.most_grid_side);
  if (video) {
    p.video_size = [canvas = canvas_of(p.geometry, video, p.most_grid_side)](
                       std::int64_t, std::int64_t height_px, std::int64_t width_px) {
      return canvas(height_px, width_px);
    };
  }
  p.content_size = [image = std::move(image), video = std::move(video)](const ItemPlan& plan) {
    const ContentSize& content = plan.modality == Modality::kImage ? image : video;
    return content(plan.source_height_px, plan.source_width_px);
  };
}

}  // namespace fovea::common
