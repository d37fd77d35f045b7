#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "checkpoint/hf_config.h"
#include "fovea/options.h"
#include "models/common/grid/processor.h"

namespace fovea::lfm2_vl {

/// Sizes, tiling and scaling of images, from the processor file. Keys are named as there.
struct Processing {
  common::GridProcessing grid;     ///< its limits are those of a view at its own size
  bool do_image_splitting = true;  ///< large images into tiles
  std::int64_t min_tiles = 2;
  std::int64_t max_tiles = 10;
  std::int64_t tile_size = 512;       ///< pixels a side of a tile
  bool use_thumbnail = true;          ///< besides tiles
  double max_pixels_tolerance = 2.0;  ///< times the largest area: images above are split
};

/// @throws Error(kCorruptData) naming the key for wrong types and for sizes that contradict
/// `geometry`, Error(kUnsupported) for steps that are switched off, for another filter and for
/// tiles that are no whole tokens. Source: docs/reference/lfm2_vl.md, "Processing".
[[nodiscard]] Processing read_processing(const checkpoint::HfConfig& files,
                                         const common::GridGeometry& geometry,
                                         const MediaOptions& media);

/// An image is one view at its own size, or square tiles in reading order and a thumbnail at its
/// own size. plan.grid is (1, tile rows, tile columns). The model takes no pixel values.
class Processor final : public common::GridProcessor {
 public:
  explicit Processor(Processing processing)
      : GridProcessor(processing.grid), p_(std::move(processing)) {}

  [[nodiscard]] ItemPlan plan_image(std::int64_t width_px, std::int64_t height_px) const override;
  void fill_frame(const ItemPlan& plan, std::int64_t index, const RgbView& frame,
                  std::span<std::uint8_t> out) const override;

 private:
  Processing p_;
};

}  // namespace fovea::lfm2_vl
