// Host side of HunyuanOCR: limits of areas count the pixels of an image.
#include "models/hunyuan_vl/processor.h"

#include "models/common/grid/processor_file.h"

namespace fovea::hunyuan_vl {

namespace {

/// Source: transformers 5.24, hunyuan_vl/image_processing_hunyuan_vl.py.
constexpr common::ProcessorClasses kClasses{.image = {.range = {512 * 512, 2048 * 2048},
                                                      .scaling = common::kClipScaling,
                                                      .overrides_size = true,
                                                      .always_bicubic = true}};

/// A plan of tokens as one of rows.
ItemPlan with_separators(ItemPlan plan, std::int64_t merge) {
  const std::int64_t newlines = plan.grid[1] / merge;
  constexpr std::int64_t kEnds = 2;  // begin and end
  plan.spec.out_rows += newlines + kEnds;
  plan.spec.path_tokens[0] = plan.spec.out_rows;
  plan.spec.units[0].rows = plan.spec.out_rows;
  return plan;
}

}  // namespace

common::GridProcessing read_processing(const checkpoint::HfConfig& files,
                                       const common::GridGeometry& grid,
                                       const MediaOptions& media) {
  common::GridProcessing p{.geometry = grid, .row_major_values = true};
  common::read_grid_processor(files, kClasses, media, p);
  p.image_size = [factor = grid.resize_factor(), range = p.limits.image](std::int64_t height_px,
                                                                         std::int64_t width_px) {
    return common::smart_resize_image(height_px, width_px, factor, range);
  };
  return p;
}

ItemPlan Processor::plan_image(std::int64_t width_px, std::int64_t height_px) const {
  return with_separators(GridProcessor::plan_image(width_px, height_px),
                         processing().geometry.spatial_merge_size);
}

ItemPlan Processor::plan_grid(Modality modality, const std::array<std::int64_t, 3>& grid) const {
  return with_separators(GridProcessor::plan_grid(modality, grid),
                         processing().geometry.spatial_merge_size);
}

}  // namespace fovea::hunyuan_vl
