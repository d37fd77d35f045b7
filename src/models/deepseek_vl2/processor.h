#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "checkpoint/hf_config.h"
#include "fovea/options.h"
#include "media/resize/resize.h"
#include "models/common/views/canvas_tiles.h"
#include "models/deepseek_vl2/config.h"

namespace fovea::deepseek_vl2 {

/// How bytes become values, and which arithmetic resizes.
struct Processing {
  common::ToTensorScaling scaling;
  media::ResizeEngine engine = media::ResizeEngine::kPillow;
};

[[nodiscard]] Processing read_processing(const checkpoint::HfConfig& files,
                                         const MediaOptions& media);

/// The candidate that keeps most pixels of an image, and of those the one with the least padding.
/// Source: docs/reference/deepseek_vl2.md, "Views".
[[nodiscard]] Resolution best_resolution(const Config& config, std::int64_t width_px,
                                         std::int64_t height_px);

/// The host side. Pixels of an item are the global view, then the tiles, row by row of the image;
/// plan.grid is (1, tile rows, tile columns).
class Processor final : public ItemProcessor {
 public:
  Processor(Config config, Processing processing)
      : config_(std::move(config)), p_(std::move(processing)) {}

  /// @throws Error(kInvalidArgument) for images so thin that a side on a canvas would vanish.
  [[nodiscard]] ItemPlan plan_image(std::int64_t width_px, std::int64_t height_px) const override;
  void fill_frame(const ItemPlan& plan, std::int64_t index, const RgbView& frame,
                  std::span<std::uint8_t> out) const override;
  [[nodiscard]] std::string assumptions() const override { return p_.scaling.assumptions; }
  [[nodiscard]] std::string sources() const override { return p_.scaling.sources; }

 private:
  void fill_canvas(const ItemPlan& plan, RgbView image, Resolution canvas,
                   std::span<std::uint8_t> out) const;

  Config config_;
  Processing p_;
};

}  // namespace fovea::deepseek_vl2
