// Images and frames on black canvases.
#include "models/common/grid/padded.h"

#include <algorithm>

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/frames.h"

namespace fovea::common {

namespace {

void check_grid(std::int64_t height, std::int64_t width, std::int64_t most_side) {
  FOVEA_CHECK(height <= most_side && width <= most_side, kInvalidArgument,
              "the model takes grids of less than ", most_side + 1, " patches a side, got ", width,
              "x", height);
}

}  // namespace

void check_tower_size(const JsonView& file, std::string_view key, std::int64_t expected) {
  const std::int64_t got = read_size(file, key, expected);
  FOVEA_CHECK(got == expected, kCorruptData, file.path(), ".", key, ": ", got,
              " contradicts config.json, which says ", expected);
}

ContentSize canvas_of(const GridGeometry& geometry, ContentSize content,
                      std::int64_t most_grid_side) {
  return [=](std::int64_t height_px, std::int64_t width_px) {
    check_area(width_px, height_px);
    const Size2d inner = content(height_px, width_px);
    const std::int64_t factor = geometry.resize_factor();
    const auto padded = [&](std::int64_t side) { return (side + factor - 1) / factor * factor; };
    const Size2d canvas{padded(inner.height_px), padded(inner.width_px)};
    check_grid(canvas.height_px / geometry.patch_size, canvas.width_px / geometry.patch_size,
               most_grid_side);
    return canvas;
  };
}

ItemPlan PaddedProcessor::plan_grid(Modality modality,
                                    const std::array<std::int64_t, 3>& grid) const {
  const ItemPlan plan = GridProcessor::plan_grid(modality, grid);
  check_grid(grid[1], grid[2], most_grid_side_);
  return plan;
}

void PaddedProcessor::fill_frame(const ItemPlan& plan, std::int64_t index, const RgbView& frame,
                                 std::span<std::uint8_t> out) const {
  check_frame(plan, index, frame, out);
  const ContentSize& content_of =
      plan.modality == Modality::kImage ? image_content_ : video_content_;
  const Size2d content = content_of(plan.source_height_px, plan.source_width_px);
  const media::Image image =
      resized(frame, content.width_px, content.height_px, processing().engine);
  const std::size_t frame_bytes = out.size() / static_cast<std::size_t>(plan.num_frames);
  const std::span<std::uint8_t> canvas =
      out.subspan(static_cast<std::size_t>(index) * frame_bytes, frame_bytes);
  std::ranges::fill(canvas, std::uint8_t{0});
  paste(view_of(image), 0, 0, plan.resized_width_px, canvas);
}

}  // namespace fovea::common
