#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "checkpoint/hf_config.h"
#include "fovea/options.h"
#include "fovea/tower/models/item_processor.h"
#include "models/common/views/processing.h"
#include "models/phi4_multimodal/config.h"

namespace fovea::phi4_multimodal {

/// How images become views.
struct Processing {
  common::ViewProcessing views;  ///< whose filter is that of images, before the global view
  std::int64_t dynamic_hd = 36;  ///< most views of an image besides the global one
};

/// @throws Error(kCorruptData) naming the key for wrong types, Error(kUnsupported) for sizes that
/// contradict `config`, another filter, and steps that are switched off.
/// Source: docs/reference/phi4_multimodal.md, "Processing".
[[nodiscard]] Processing read_processing(const checkpoint::HfConfig& files, const Config& config,
                                         const MediaOptions& media);

/// The part of a view that shows the image, on the canvas, in patches. The last of a row or column
/// may be white in part.
struct View {
  std::int64_t y = 0, x = 0;
  std::int64_t rows = 0, cols = 0;
  std::int64_t first_row = 0;    ///< of the tower, once inputs are filled
  std::int64_t padding_row = 0;  ///< that of all white patches beside it

  [[nodiscard]] std::int64_t patches() const { return rows * cols; }
  /// Whether white patches beside it share tokens of 2 x 2 patches with it.
  [[nodiscard]] bool is_padded() const { return rows % 2 + cols % 2 > 0; }
  /// The row of a patch of the view.
  [[nodiscard]] std::int64_t row_of(std::int64_t y_in, std::int64_t x_in) const {
    return y_in < rows && x_in < cols ? first_row + y_in * cols + x_in : padding_row;
  }
};

/// The host side. Pixels of an item are levels of several bytes (media::resize_rgb_fine): those of
/// its views, one after the other. plan.grid is (1, rows of views, columns of views), the resized
/// size that of the image on the canvas. Source: docs/reference/phi4_multimodal.md, "Canvas".
class Processor final : public common::ViewProcessor {
 public:
  explicit Processor(Processing processing);

  [[nodiscard]] const common::SquareView& view() const noexcept { return processing().view; }
  /// The levels of a patch of padding.
  [[nodiscard]] std::span<const std::uint8_t> white_patch() const noexcept { return white_patch_; }
  /// The global view, then those of the canvas that show the image.
  [[nodiscard]] std::vector<View> views_of(const ItemPlan& plan) const;

  /// @throws Error(kInvalidArgument) also for an image too thin.
  [[nodiscard]] ItemPlan plan_image(std::int64_t width_px, std::int64_t height_px) const override;
  void fill_frame(const ItemPlan& plan, std::int64_t index, const RgbView& frame,
                  std::span<std::uint8_t> out) const override;

 private:
  std::int64_t dynamic_hd_;
  std::vector<std::uint8_t> white_patch_;
};

}  // namespace fovea::phi4_multimodal
