#pragma once

#include <cstdint>

#include "checkpoint/hf_config.h"
#include "fovea/options.h"
#include "models/common/grid/processor.h"

namespace fovea::glm4v {

/// Sizes of GLM-5: frames keep the ratio of their sides and stand at the upper left of a black
/// canvas whose sides are whole tokens. Source: docs/reference/glm4v.md, "Canvas".
struct CanvasRule {
  std::int64_t temporal_factor = 2;  ///< frames of a patch; an image has as many
  std::int64_t factor = 28;          ///< pixels a side of a token
  common::PixelRange range = {};     ///< of frames times pixels of the canvas

  /// @throws Error(kInvalidArgument) for an image without area, and if the range does not allow one
  /// token per pair of frames.
  [[nodiscard]] common::Size2d canvas(std::int64_t num_frames, std::int64_t height_px,
                                      std::int64_t width_px) const;
  /// The size that a frame is resized to. It fits `canvas`, which is that of the same frames.
  [[nodiscard]] common::Size2d content(std::int64_t num_frames, std::int64_t height_px,
                                       std::int64_t width_px, common::Size2d canvas) const;
};

/// Sizes, sampling and scaling of images and videos, from the processor files of GLM-5.
/// @throws as common::read_grid_processor.
[[nodiscard]] common::GridProcessing read_canvas_processing(const checkpoint::HfConfig& files,
                                                            const common::GridGeometry& geometry,
                                                            const MediaOptions& media);

}  // namespace fovea::glm4v
