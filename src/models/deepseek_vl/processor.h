#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "models/common/views/processing.h"
#include "models/deepseek_vl/config.h"

namespace fovea::deepseek_vl {

struct Processing {
  common::ViewProcessing views;
  std::int64_t min_size = 14;                             ///< least side of a resized image
  std::array<std::uint8_t, 3> background{122, 116, 104};  ///< of the padding: the mean of CLIP
};

/// @throws Error(kCorruptData) for wrong types, Error(kUnsupported) for images that are not padded
/// or would be larger than a view, and as common::read_view_processing.
/// Source: docs/reference/siglip.md, "DeepSeek-VL".
[[nodiscard]] Processing read_processing(const checkpoint::HfConfig& files, const Config& config,
                                         const MediaOptions& media);

/// The host side. Pixels of an image are a view with the image in its middle, its longer side that
/// of the view; plan.grid is (1, 1, 1).
class Processor final : public common::ViewProcessor {
 public:
  explicit Processor(const Processing& processing)
      : ViewProcessor(processing.views),
        min_size_(processing.min_size),
        background_(processing.background) {}

  [[nodiscard]] ItemPlan plan_image(std::int64_t width_px, std::int64_t height_px) const override;
  void fill_frame(const ItemPlan& plan, std::int64_t index, const RgbView& frame,
                  std::span<std::uint8_t> out) const override;

 private:
  std::int64_t min_size_;
  std::array<std::uint8_t, 3> background_;
};

}  // namespace fovea::deepseek_vl
