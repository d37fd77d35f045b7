#pragma once

#include <cstdint>
#include <span>

#include "models/deepseek_ocr/config.h"
#include "models/encoder_graph_model.h"

namespace fovea::deepseek_ocr {

/// Paths of the graph protocol.
enum Path : PathId { kGlobal = 0, kLocal = 1 };

/// Columns and rows of local tiles; 1 x 1 means that a picture is not tiled.
struct Tiling {
  std::int64_t cols = 1;
  std::int64_t rows = 1;

  [[nodiscard]] bool tiled() const { return cols > 1 || rows > 1; }
  [[nodiscard]] std::int64_t count() const { return tiled() ? cols * rows : 0; }
};

/// The tiling whose aspect ratio is nearest to that of the picture; among equally near ones the
/// larger, if the picture has the pixels for it. Source: DeepSeek-OCR specification, section 4.1.
[[nodiscard]] Tiling choose_tiling(const PreprocessConfig& config, std::int64_t width_px,
                                   std::int64_t height_px);

/// Counts of a picture: tokens of both paths, and the assembled rows with newlines and separator.
/// plan.grid is (1, tile rows, tile columns).
/// @throws Error(kInvalidArgument) for pictures so thin that a side of the global view would
/// vanish.
[[nodiscard]] ItemPlan plan_image(const PreprocessConfig& config, std::int64_t width_px,
                                  std::int64_t height_px);

/// The tiling of a planned picture.
[[nodiscard]] Tiling tiling_of(const ItemPlan& plan);

/// Writes the views of a picture: the global view on its canvas, then the tiles, row by row of the
/// picture. @throws Error(kInvalidArgument) if the picture has another size than the plan.
/// Source: DeepSeek-OCR specification, sections 4.2 and 4.3.
void fill_pixels(const PreprocessConfig& config, const ItemPlan& plan, RgbView picture,
                 std::span<std::uint8_t> out);

}  // namespace fovea::deepseek_ocr
