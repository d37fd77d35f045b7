#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "checkpoint/hf_config.h"
#include "fovea/tower/models/item_processor.h"
#include "media/normalize.h"
#include "media/resize/resize.h"
#include "models/common/geometry.h"
#include "models/common/views/tiles.h"

namespace fovea::common {

// Images that become a view of the whole on a canvas, and, where they are large, tiles: two paths,
// of which the second may be empty.

/// A place on a canvas.
struct CanvasRect {
  std::int64_t x = 0, y = 0, width = 0, height = 0;
};

/// Where an image lies on a square canvas that its longer side fills: sides are rounded in double,
/// half to even, a side of 0 is left to the caller.
using CanvasFit = CanvasRect (*)(std::int64_t side, std::int64_t width_px, std::int64_t height_px);

/// Where ImageOps.pad of Pillow places an image on any canvas: the ratio of its sides comes first,
/// and half of a pixel beside it is rounded. Source: docs/reference/deepseek_ocr.md, "Global view".
[[nodiscard]] CanvasRect pillow_fit(std::int64_t canvas_width_px, std::int64_t canvas_height_px,
                                    std::int64_t width_px, std::int64_t height_px);
/// The same on a square one.
[[nodiscard]] CanvasRect square_pillow_fit(std::int64_t side, std::int64_t width_px,
                                           std::int64_t height_px);

struct CanvasTiles {
  SquareView canvas;
  SquareView tile;
  std::int64_t tile_threshold_px = 0;  ///< images with a longer side are tiled
  std::int64_t min_tiles = 2;
  std::int64_t max_tiles = 6;  ///< 0: no image is tiled
  std::array<std::uint8_t, 3> background{127, 127, 127};
  CanvasFit fit = &square_pillow_fit;
  media::ResizeEngine engine = media::ResizeEngine::kPillow;
};

/// The tiling of a planned image; nothing where it is not tiled.
[[nodiscard]] std::optional<Tiling> tiling_of(const ItemPlan& plan);

/// The host side. Pixels of an item are the canvas, then the tiles, row by row of the image;
/// plan.grid is (1, tile rows, tile columns). A family adds the rows that no view makes.
/// Source: docs/reference/deepseek_ocr.md, "Tiles" and "Global view".
class CanvasTilesProcessor : public ItemProcessor {
 public:
  explicit CanvasTilesProcessor(const CanvasTiles& views) : v_(views) {}

  /// @throws Error(kInvalidArgument) for images so thin that a side on the canvas would vanish.
  [[nodiscard]] ItemPlan plan_image(std::int64_t width_px, std::int64_t height_px) const override;
  void fill_frame(const ItemPlan& plan, std::int64_t index, const RgbView& frame,
                  std::span<std::uint8_t> out) const final;

 private:
  [[nodiscard]] Tiling choose_tiling(std::int64_t width_px, std::int64_t height_px) const;
  void fill_canvas(const ItemPlan& plan, RgbView image, std::span<std::uint8_t> out) const;

  CanvasTiles v_;
};

/// Mean and deviation as ToTensor and Normalize of torchvision apply them.
struct ToTensorScaling {
  std::array<float, 3> image_mean{0.5f, 0.5f, 0.5f};
  std::array<float, 3> image_std{0.5f, 0.5f, 0.5f};
  std::string assumptions;  ///< ItemProcessor::assumptions
  std::string sources;      ///< ItemProcessor::sources

  [[nodiscard]] media::NormalizeTable table() const {
    return media::to_tensor_normalize_table(image_mean, image_std);
  }
};

/// Those of processor_config.json, if there is one.
/// @throws Error(kCorruptData) naming the key for wrong types and deviations that are not above 0.
[[nodiscard]] ToTensorScaling read_to_tensor_scaling(const checkpoint::HfConfig& files);

}  // namespace fovea::common
