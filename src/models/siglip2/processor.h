#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "checkpoint/hf_config.h"
#include "fovea/options.h"
#include "models/common/grid/processor.h"

namespace fovea::siglip2 {

/// @throws Error(kCorruptData) naming the key for wrong types and for a patch_size that contradicts
/// `geometry`, Error(kUnsupported) for steps that are switched off, for another filter and for
/// another class. Source: docs/reference/retrieval.md, "SigLIP 2".
[[nodiscard]] common::GridProcessing read_processing(const checkpoint::HfConfig& files,
                                                     const common::GridGeometry& geometry,
                                                     const MediaOptions& media);

/// The size with the most patches that are at most `max_num_patches`: whole patches, rounded up,
/// of sides that are scaled alike.
[[nodiscard]] common::Size2d naflex_size(std::int64_t height_px, std::int64_t width_px,
                                         std::int64_t patch_size, std::int64_t max_num_patches);

/// The host side. The model takes no pixel values.
class Processor final : public common::GridProcessor {
 public:
  /// @param vectors whether the only row of an image is its vector.
  Processor(common::GridProcessing processing, bool vectors)
      : GridProcessor(std::move(processing)), vectors_(vectors) {}

  [[nodiscard]] ItemPlan plan_image(std::int64_t width_px, std::int64_t height_px) const override;
  [[nodiscard]] ItemPlan plan_grid(Modality modality,
                                   const std::array<std::int64_t, 3>& grid) const override;
  void fill_pixel_values(const ItemPlan& plan, const ConstTensorView& values,
                         std::span<std::uint8_t> out) const override;

 private:
  bool vectors_;
};

}  // namespace fovea::siglip2
