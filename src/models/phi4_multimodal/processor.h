#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/hf_config.h"
#include "fovea/options.h"
#include "fovea/tower/models/item_processor.h"
#include "media/resize/resize.h"
#include "models/common/processor_file.h"
#include "models/common/views/tiles.h"
#include "models/phi4_multimodal/config.h"

namespace fovea::phi4_multimodal {

/// How images become views.
struct Processing {
  common::SquareView view;
  std::int64_t dynamic_hd = 36;  ///< most views of an image besides the global one
  common::PixelScaling scaling;
  media::ResizeEngine engine = media::ResizeEngine::kTorchvision;
  std::string assumptions;  ///< ItemProcessor::assumptions
  std::string sources;      ///< ItemProcessor::sources
};

/// @throws Error(kCorruptData) naming the key for wrong types, Error(kUnsupported) for sizes that
/// contradict `config`, another filter, and steps that are switched off.
/// Source: docs/reference/phi4_multimodal.md, "Processing".
[[nodiscard]] Processing read_processing(const checkpoint::HfConfig& files, const Config& config,
                                         const MediaOptions& media);

/// An image at the upper left of a canvas of views, whose rest is white.
struct Placement {
  common::Tiling canvas;
  std::int64_t width_px = 0;  ///< of the image
  std::int64_t height_px = 0;
  std::int64_t rows = 0;  ///< of patches that are not padding; the last may be so in part
  std::int64_t cols = 0;

  /// Tokens of the canvas, 2 x 2 patches each, that have a patch of the image.
  [[nodiscard]] std::int64_t token_rows() const { return (rows + 1) / 2; }
  [[nodiscard]] std::int64_t token_cols() const { return (cols + 1) / 2; }
};

/// @throws Error(kInvalidArgument) for an image too thin. Source:
/// docs/reference/phi4_multimodal.md, "Canvas".
[[nodiscard]] Placement place_image(const Processing& processing, std::int64_t width_px,
                                    std::int64_t height_px);

/// The host side. Pixels of an item are levels of several bytes (media::resize_rgb_fine): the
/// global view, then the part of the canvas that tokens are made of; plan.grid is (1, rows of
/// views, columns of views).
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

}  // namespace fovea::phi4_multimodal
