// The views of DeepSeek-OCR and the rows between them.
#include "models/deepseek_ocr/processor.h"

#include "models/common/processor_file.h"

namespace fovea::deepseek_ocr {

Processing read_processing(const checkpoint::HfConfig& files, const MediaOptions& media) {
  Processing p{.scaling = common::read_to_tensor_scaling(files)};
  p.engine = common::resize_engine(media, p.engine);
  return p;
}

Processor::Processor(Processing processing)
    : CanvasTilesProcessor({.canvas = processing.views[kGlobal],
                            .tile = processing.views[kLocal],
                            .tile_threshold_px = processing.tile_threshold_px,
                            .min_tiles = processing.min_tiles,
                            .max_tiles = processing.max_tiles,
                            .engine = processing.engine}),
      p_(std::move(processing)) {}

ItemPlan Processor::plan_image(std::int64_t width_px, std::int64_t height_px) const {
  ItemPlan plan = CanvasTilesProcessor::plan_image(width_px, height_px);
  const std::int64_t base_rows = p_.views[kGlobal].tokens_side();
  const std::int64_t tile_rows =
      tiling_of(plan) ? plan.grid[1] * p_.views[kLocal].tokens_side() : 0;
  plan.spec.path_tokens[kGlobal] += base_rows;  // newlines, which its path adds
  plan.spec.units[kGlobal].rows += base_rows;
  plan.spec.out_rows += base_rows + tile_rows + 1;
  return plan;
}

}  // namespace fovea::deepseek_ocr
