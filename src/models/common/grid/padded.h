#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <utility>

#include "core/json.h"
#include "models/common/grid/processor.h"

namespace fovea::common {

/// Size of an image, or of the frames of a video, before padding.
/// @throws Error(kInvalidArgument) for one that cannot be.
using ContentSize = std::function<Size2d(std::int64_t height_px, std::int64_t width_px)>;

/// Sizes and scaling of images and videos, from the processor files.
struct PaddedProcessing {
  GridProcessing grid;  ///< image_size and video_size give the canvas, padding included
  ContentSize image_content;
  ContentSize video_content = {};
  std::int64_t most_grid_side = 0;  ///< patches of a canvas
};

/// The size of a canvas for `content`, for GridProcessing::image_size.
[[nodiscard]] ContentSize canvas_of(const GridGeometry& geometry, ContentSize content,
                                    std::int64_t most_grid_side);

/// Requires the number that the tower has, where the file has the key.
/// @throws Error(kCorruptData) naming the key for another.
void check_tower_size(const JsonView& file, std::string_view key, std::int64_t expected);

/// Images and frames at the upper left of a black canvas whose sides are whole tokens.
class PaddedProcessor final : public GridProcessor {
 public:
  explicit PaddedProcessor(PaddedProcessing processing)
      : GridProcessor(std::move(processing.grid)),
        image_content_(std::move(processing.image_content)),
        video_content_(std::move(processing.video_content)),
        most_grid_side_(processing.most_grid_side) {}

  /// @throws also for grids that no image has, or that the reference has no angles for.
  [[nodiscard]] ItemPlan plan_grid(Modality modality,
                                   const std::array<std::int64_t, 3>& grid) const override;
  void fill_frame(const ItemPlan& plan, std::int64_t index, const RgbView& frame,
                  std::span<std::uint8_t> out) const override;

 private:
  ContentSize image_content_;
  ContentSize video_content_;
  std::int64_t most_grid_side_;
};

}  // namespace fovea::common
