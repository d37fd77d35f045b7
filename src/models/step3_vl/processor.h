#pragma once

#include <cstdint>
#include <span>

#include "fovea/tower/models/item_processor.h"
#include "models/common/views/windows.h"
#include "models/step3_vl/config.h"

namespace fovea::step3_vl {

using common::Crop;

/// The windows of this family, as common::plan_crop plans them.
[[nodiscard]] inline Crop plan_crop(std::int64_t width_px, std::int64_t height_px, bool windows) {
  constexpr common::WindowRule kRule{.most_small_px = 727, .compares_parts = true};
  return common::plan_crop(kRule, width_px, height_px, windows);
}

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
