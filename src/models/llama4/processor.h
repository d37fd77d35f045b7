#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "checkpoint/hf_config.h"
#include "fovea/options.h"
#include "media/normalize.h"
#include "media/resize/resize.h"
#include "models/common/processor_file.h"
#include "models/common/views/tiles.h"
#include "models/llama4/config.h"

namespace fovea::llama4 {

/// How images become tiles.
struct Processing {
  common::SquareView tile;
  std::int64_t max_patches = 16;  ///< tiles of a canvas
  bool resize_to_max_canvas = false;
  common::PixelScaling scaling;
  media::ResizeEngine engine = media::ResizeEngine::kTorchvision;
  std::string assumptions;  ///< ItemProcessor::assumptions
  std::string sources;      ///< ItemProcessor::sources

  [[nodiscard]] media::NormalizeTable table() const {
    return media::bf16_normalize_table(scaling.image_mean, scaling.image_std,
                                       scaling.rescale_factor);
  }
};

/// @throws Error(kCorruptData) naming the key for wrong types and for sizes that contradict
/// `config`, Error(kUnsupported) for another filter and for steps that are switched off.
/// Source: docs/reference/llama4.md, "Processing".
[[nodiscard]] Processing read_processing(const checkpoint::HfConfig& files, const Config& config,
                                         const MediaOptions& media);

/// Where an image lies on its canvas: at the upper left, resized to width_px x height_px.
struct Placement {
  common::Tiling canvas;
  std::int64_t width_px = 0;
  std::int64_t height_px = 0;
};

/// Source: docs/reference/llama4.md, "Canvas".
[[nodiscard]] Placement place_image(const Processing& processing, std::int64_t width_px,
                                    std::int64_t height_px);

/// The host side. Pixels of an item are the tiles of its canvas, row by row, and the whole image
/// as the last tile if there are several; plan.grid is (1, tile rows, tile columns).
class Processor final : public ItemProcessor {
 public:
  explicit Processor(Processing processing) : p_(std::move(processing)) {}

  [[nodiscard]] const Processing& processing() const noexcept { return p_; }

  [[nodiscard]] ItemPlan plan_image(std::int64_t width_px, std::int64_t height_px) const override;
  void fill_frame(const ItemPlan& plan, std::int64_t index, const RgbView& frame,
                  std::span<std::uint8_t> out) const override;
  [[nodiscard]] std::string assumptions() const override { return p_.assumptions; }
  [[nodiscard]] std::string sources() const override { return p_.sources; }

 private:
  Processing p_;
};

}  // namespace fovea::llama4
