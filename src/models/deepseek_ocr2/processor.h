#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "checkpoint/hf_config.h"
#include "fovea/options.h"
#include "media/normalize.h"
#include "models/common/views/canvas_tiles.h"
#include "models/deepseek_ocr2/config.h"

namespace fovea::deepseek_ocr2 {

/// Where transformers places an image on a canvas: both sides times one factor, rounded half to
/// even; half of a pixel beside it is dropped. Source: docs/reference/deepseek_ocr2.md, "Views".
[[nodiscard]] common::CanvasRect scaled_fit(std::int64_t side, std::int64_t width_px,
                                            std::int64_t height_px);

/// How images become views, and bytes the values that the towers read.
struct Processing {
  common::CanvasTiles views;
  media::NormalizeTable table{};
  std::string assumptions;  ///< ItemProcessor::assumptions
  std::string sources;      ///< ItemProcessor::sources

  /// In the order of Path.
  [[nodiscard]] Views views_of_paths() const { return {views.canvas, views.tile}; }
};

/// The vendor's fixed sizes with the scaling of processor_config.json, or the processor file of
/// transformers. @throws Error(kCorruptData) naming the key for wrong types,
/// Error(kUnsupported) for sizes that there are no queries for, and for steps that are switched
/// off. Source: docs/reference/deepseek_ocr2.md, "Views".
[[nodiscard]] Processing read_processing(const checkpoint::HfConfig& files, Format format,
                                         const MediaOptions& media);

/// The host side: the global view and the tiles, and one separator behind their rows.
class Processor final : public common::CanvasTilesProcessor {
 public:
  explicit Processor(const Processing& processing)
      : CanvasTilesProcessor(processing.views),
        assumptions_(processing.assumptions),
        sources_(processing.sources) {}

  [[nodiscard]] ItemPlan plan_image(std::int64_t width_px, std::int64_t height_px) const override;
  [[nodiscard]] std::string assumptions() const override { return assumptions_; }
  [[nodiscard]] std::string sources() const override { return sources_; }

 private:
  std::string assumptions_;
  std::string sources_;
};

}  // namespace fovea::deepseek_ocr2
