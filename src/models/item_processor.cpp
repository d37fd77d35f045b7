// The answers of a family that takes still images alone, and the units of one that names none.
#include "fovea/tower/models/item_processor.h"

#include <algorithm>
#include <iterator>

#include "core/check.h"

namespace fovea {

std::vector<ItemUnits> units_of(const ItemSpec& spec) {
  std::vector<ItemUnits> units;
  std::ranges::copy_if(spec.units, std::back_inserter(units),
                       [](const ItemUnits& some) { return some.count > 0; });
  if (units.empty()) units.push_back({1, spec.input_rows, spec.out_rows});
  return units;
}

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
