#pragma once

#include <cstdint>
#include <span>

#include "fovea/tower/models/item_processor.h"
#include "models/common/views/tiles.h"
#include "models/step3_vl/config.h"

namespace fovea::step3_vl {

/// The size of an image before it is cut, and its windows.
struct Crop {
  std::int64_t square_px = 0;  ///< side of a black square with the image in its corner; 0: none
  std::int64_t width_px = 0;   ///< of the image, or the square, once its longer side is limited
  std::int64_t height_px = 0;
  std::int64_t window_px = 0;  ///< side of the windows; 0: the image has none
  common::Tiling windows{.cols = 0, .rows = 0};
  std::int64_t crop_width_px = 0;   ///< size that windows are cut from, which may be smaller than a
  std::int64_t crop_height_px = 0;  ///< window
};

/// @param windows whether images have windows at all.
/// @throws Error(kInvalidArgument) for an image without area, one whose shorter side vanishes when
/// the longer one is limited, and one whose square or windows would fill the memory.
/// Source: docs/reference/step3_vl.md, "Windows".
[[nodiscard]] Crop plan_crop(std::int64_t width_px, std::int64_t height_px, bool windows);

/// The host side. Pixels of an item are the whole image at 728 x 728, then its windows at 504 x
/// 504, row by row, each in planes of level bytes (media::resize_rgb_fine); plan.grid is (1, window
/// rows, window columns), (1, 0, 0) for an image without windows. Source:
/// docs/reference/step3_vl.md, "Windows" and "Pixels".
class Processor final : public ItemProcessor {
 public:
  /// @param windows whether large images have windows.
  explicit Processor(bool windows) : windows_(windows) {}

  /// @throws Error(kInvalidArgument) as plan_crop.
  [[nodiscard]] ItemPlan plan_image(std::int64_t width_px, std::int64_t height_px) const override;
  void fill_frame(const ItemPlan& plan, std::int64_t index, const RgbView& frame,
                  std::span<std::uint8_t> out) const override;

 private:
  bool windows_;
};

}  // namespace fovea::step3_vl
