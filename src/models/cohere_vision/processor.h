#pragma once

#include <cstdint>

#include "models/cohere_vision/config.h"
#include "models/common/views/processing.h"
#include "models/common/views/tiles.h"

namespace fovea::cohere_vision {

struct Processing {
  Format format = Format::kCohere2;  ///< whose rule chooses the tiling
  common::ViewProcessing views;
  std::int64_t min_tiles = 1;  ///< which Cohere2 does not read
  std::int64_t max_tiles = 12;
};

/// The tiling of at most max_tiles tiles that enlarges an image least, or shrinks it least if none
/// is large enough; among equal ones that of the fewest tiles, then of the fewest columns. An image
/// keeps no ratio: what counts is the axis that is enlarged less.
/// Source: docs/reference/siglip.md, "Cohere2-Vision and Aya Vision".
[[nodiscard]] common::Tiling least_scaled_tiling(std::int64_t width_px, std::int64_t height_px,
                                                 std::int64_t tile_side_px, std::int64_t max_tiles);

/// @throws Error(kCorruptData) for wrong types and numbers of tiles out of bounds, and as
/// common::read_view_processing.
[[nodiscard]] Processing read_processing(const checkpoint::HfConfig& files, const Config& config,
                                         const MediaOptions& media);

/// The host side. Pixels of an image are its tiles, row by row of it, then the whole image, if it
/// has several; plan.grid is (1, tile rows, tile columns).
class Processor final : public common::ViewProcessor {
 public:
  explicit Processor(const Processing& processing)
      : ViewProcessor(processing.views),
        format_(processing.format),
        min_tiles_(processing.min_tiles),
        max_tiles_(processing.max_tiles) {}

  [[nodiscard]] ItemPlan plan_image(std::int64_t width_px, std::int64_t height_px) const override;

 private:
  Format format_;
  std::int64_t min_tiles_;
  std::int64_t max_tiles_;
};

}  // namespace fovea::cohere_vision
