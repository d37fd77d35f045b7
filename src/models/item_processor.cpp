// What a family that takes still images alone answers.
#include "fovea/tower/models/item_processor.h"

#include "core/check.h"

namespace fovea {

ItemPlan ItemProcessor::plan_video(std::int64_t, std::int64_t, std::int64_t) const {
  FOVEA_CHECK(false, kUnsupported, "the model takes no videos");
}

ItemPlan ItemProcessor::plan_grid(Modality, const std::array<std::int64_t, 3>&) const {
  FOVEA_CHECK(false, kUnsupported, "the model takes images, no pixel values");
}

std::vector<std::int64_t> ItemProcessor::sample_frames(std::int64_t, double, double) const {
  FOVEA_CHECK(false, kUnsupported, "the model takes no videos");
}

std::vector<double> ItemProcessor::timestamps(std::span<const double> frame_seconds) const {
  return {frame_seconds.begin(), frame_seconds.end()};
}

void ItemProcessor::fill_pixel_values(const ItemPlan&, const ConstTensorView&,
                                      std::span<std::uint8_t>) const {
  FOVEA_CHECK(false, kUnsupported, "the model takes images, no pixel values");
}

}  // namespace fovea
