#pragma once

#include <cstdint>
#include <span>

#include "models/common/views/processing.h"
#include "models/common/views/tiles.h"
#include "models/gemma3/config.h"

namespace fovea::gemma3 {

/// When an image has crops beside the whole image. Defaults are those of the reference's processor.
struct PanAndScan {
  bool is_on = false;
  std::int64_t min_crop_px = 256;  ///< least side of a crop
  std::int64_t max_crops = 4;
  double min_ratio = 1.2;  ///< of the longer side to the shorter
};

/// Pieces of an image along its longer side, equal but for the last, which may be shorter.
struct Crops {
  common::Tiling tiling{.cols = 0, .rows = 0};
  std::int64_t width_px = 0;
  std::int64_t height_px = 0;
};

/// @throws Error(kInvalidArgument) for an image without area, and where the last crop would have
/// none. Source: docs/reference/siglip.md, "Pan and scan".
[[nodiscard]] Crops plan_crops(std::int64_t width_px, std::int64_t height_px,
                               const PanAndScan& rule);

struct Processing {
  common::ViewProcessing views;
  PanAndScan pan_and_scan;
};

/// @throws Error(kCorruptData) for wrong types and numbers out of bounds, and as
/// common::read_view_processing.
[[nodiscard]] Processing read_processing(const checkpoint::HfConfig& files, const Config& config,
                                         const MediaOptions& media);

/// The host side. Pixels of an image are the whole image and its crops, row by row of it, each
/// resized to a view; plan.grid is (1, crop rows, crop columns), (1, 0, 0) without crops.
class Processor final : public common::ViewProcessor {
 public:
  explicit Processor(const Processing& processing)
      : ViewProcessor(processing.views), pan_and_scan_(processing.pan_and_scan) {}

  /// @throws Error(kInvalidArgument) as plan_crops.
  [[nodiscard]] ItemPlan plan_image(std::int64_t width_px, std::int64_t height_px) const override;
  void fill_frame(const ItemPlan& plan, std::int64_t index, const RgbView& frame,
                  std::span<std::uint8_t> out) const override;

 private:
  PanAndScan pan_and_scan_;
};

}  // namespace fovea::gemma3
