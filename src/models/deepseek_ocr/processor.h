#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "checkpoint/hf_config.h"
#include "fovea/options.h"
#include "media/resize/resize.h"
#include "models/common/views/canvas_tiles.h"
#include "models/deepseek_ocr/config.h"

namespace fovea::deepseek_ocr {

using common::tiling_of;

/// How images become views: the whole image on a grey canvas, and local tiles of large ones.
struct Processing {
  /// The sizes stand in no file: these are those of the vendor's default mode ("gundam").
  Views views{view_of(1024), view_of(640)};
  std::int64_t tile_threshold_px = 640;  ///< images with a longer side are tiled
  std::int64_t min_tiles = 2;
  std::int64_t max_tiles = 6;
  common::ToTensorScaling scaling;
  media::ResizeEngine engine = media::ResizeEngine::kPillow;
};

/// Mean and deviation from processor_config.json, if there is one.
/// @throws as common::read_to_tensor_scaling.
[[nodiscard]] Processing read_processing(const checkpoint::HfConfig& files,
                                         const MediaOptions& media);

/// The host side: the global view and the tiles, and the newlines and the separator between them.
/// Source: docs/reference/deepseek_ocr.md, "Order of rows".
class Processor final : public common::CanvasTilesProcessor {
 public:
  explicit Processor(Processing processing);

  [[nodiscard]] const Processing& processing() const noexcept { return p_; }

  [[nodiscard]] ItemPlan plan_image(std::int64_t width_px, std::int64_t height_px) const override;
  [[nodiscard]] std::string assumptions() const override { return p_.scaling.assumptions; }
  [[nodiscard]] std::string sources() const override { return p_.scaling.sources; }

 private:
  Processing p_;
};

}  // namespace fovea::deepseek_ocr
