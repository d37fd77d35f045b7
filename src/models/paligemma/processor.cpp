// From images to square views.
#include "models/paligemma/processor.h"

#include "models/common/frames.h"
#include "models/common/views/tiles.h"

namespace fovea::paligemma {

common::ViewProcessing read_processing(const checkpoint::HfConfig& files, const Config& config,
                                       const MediaOptions& media) {
  return common::read_view_processing(files, config.tower.view, media, {}, {});
}

ItemPlan Processor::plan_image(std::int64_t width_px, std::int64_t height_px) const {
  common::check_area(width_px, height_px);
  return common::plan_tiles(width_px, height_px, {}, {processing().view, 1});
}

}  // namespace fovea::paligemma
