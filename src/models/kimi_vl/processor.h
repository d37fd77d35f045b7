#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "checkpoint/hf_config.h"
#include "fovea/options.h"
#include "models/common/grid/processor.h"

namespace fovea::kimi_vl {

/// Grids of this many patches a side and more are beyond the reference's table of angles.
inline constexpr std::int64_t kMaxGridSide = 512;

/// Sizes and scaling of images, from the processor file.
struct Processing {
  common::GridProcessing grid;         ///< image_size gives the canvas, padding included
  std::int64_t in_token_limit = 4096;  ///< patches, before padding, above which an image is shrunk
};

/// @throws Error(kCorruptData) naming the key for wrong types and for sizes that contradict
/// `geometry`, Error(kUnsupported) if images are to be cropped instead of padded.
/// Source: docs/reference/kimi_vl.md, "Processing".
[[nodiscard]] Processing read_processing(const checkpoint::HfConfig& files,
                                         const common::GridGeometry& geometry,
                                         const MediaOptions& media);

/// Images at the upper left of a black canvas whose sides are whole tokens.
class Processor final : public common::GridProcessor {
 public:
  explicit Processor(Processing processing)
      : GridProcessor(std::move(processing.grid)), in_token_limit_(processing.in_token_limit) {}

  /// @throws also for grids that the reference has no angles for.
  [[nodiscard]] ItemPlan plan_grid(Modality modality,
                                   const std::array<std::int64_t, 3>& grid) const override;
  void fill_frame(const ItemPlan& plan, std::int64_t index, const RgbView& frame,
                  std::span<std::uint8_t> out) const override;

 private:
  std::int64_t in_token_limit_;
};

}  // namespace fovea::kimi_vl
