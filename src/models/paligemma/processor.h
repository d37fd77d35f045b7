#pragma once

#include <cstdint>

#include "models/common/views/processing.h"
#include "models/paligemma/config.h"

namespace fovea::paligemma {

/// The values of SiglipImageProcessor, the processor class of the checkpoints.
/// @throws as common::read_view_processing.
[[nodiscard]] common::ViewProcessing read_processing(const checkpoint::HfConfig& files,
                                                     const Config& config,
                                                     const MediaOptions& media);

/// The host side. Pixels of an image are the image, resized to the view without keeping its ratio;
/// plan.grid is (1, 1, 1).
class Processor final : public common::ViewProcessor {
 public:
  explicit Processor(common::ViewProcessing processing) : ViewProcessor(std::move(processing)) {}

  [[nodiscard]] ItemPlan plan_image(std::int64_t width_px, std::int64_t height_px) const override;
};

}  // namespace fovea::paligemma
