#pragma once

#include <array>
#include <cstdint>

#include "checkpoint/hf_config.h"
#include "fovea/options.h"
#include "models/common/geometry.h"
#include "models/common/grid/processor.h"

namespace fovea::hunyuan_vl {

/// Sizes and scaling of images, from the processor files.
/// @throws as common::read_grid_processor. Source: docs/reference/hunyuan_vl.md, "Processing".
[[nodiscard]] common::GridProcessing read_processing(const checkpoint::HfConfig& files,
                                                     const common::GridGeometry& grid,
                                                     const MediaOptions& media);

/// The host side: grids of patches whose rows include those that no patch makes: a newline behind
/// every row of tokens, the begin and the end of the image.
/// Source: docs/reference/hunyuan_vl.md, "Order of rows".
class Processor final : public common::GridProcessor {
 public:
  using GridProcessor::GridProcessor;

  [[nodiscard]] ItemPlan plan_image(std::int64_t width_px, std::int64_t height_px) const override;
  [[nodiscard]] ItemPlan plan_grid(Modality modality,
                                   const std::array<std::int64_t, 3>& grid) const override;
};

}  // namespace fovea::hunyuan_vl
