#pragma once

#include <cstdint>
#include <utility>

#include "checkpoint/hf_config.h"
#include "fovea/options.h"
#include "models/common/grid/processor.h"
#include "models/minimax_m3_vl/config.h"

namespace fovea::minimax_m3_vl {

/// Sizes, sampling and scaling of images and videos, from the processor files.
struct Processing {
  common::GridProcessing grid;
  /// Temporal patches of a video that attend to each other; 0: all of them.
  std::int64_t vision_segment_max_frames = 0;
};

/// @throws Error(kCorruptData) naming the key for wrong types and for sizes that contradict
/// `config`, Error(kUnsupported) for steps that are switched off and for another filter.
/// Source: docs/reference/minimax_m3_vl.md, "Processing".
[[nodiscard]] Processing read_processing(const checkpoint::HfConfig& files, const Config& config,
                                         const MediaOptions& media);

/// Items over grids, of which a video attends in segments of several temporal patches. Segments of
/// equal length are the units of a video; with a shorter last one it is one unit.
class Processor final : public common::GridProcessor {
 public:
  explicit Processor(Processing processing)
      : GridProcessor(std::move(processing.grid)), segment_(processing.vision_segment_max_frames) {}

  [[nodiscard]] ItemPlan plan_video(std::int64_t num_frames, std::int64_t width_px,
                                    std::int64_t height_px) const override;
  [[nodiscard]] ItemPlan plan_grid(Modality modality,
                                   const std::array<std::int64_t, 3>& grid) const override;

  /// Temporal patches of the segments of an item, but for a shorter last one.
  [[nodiscard]] std::int64_t segment_of(const ItemPlan& plan) const;

 private:
  [[nodiscard]] ItemPlan in_segments(ItemPlan plan) const;

  std::int64_t segment_;
};

}  // namespace fovea::minimax_m3_vl
