#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "fovea/tower/models/item_processor.h"
#include "media/resize/resize.h"
#include "models/common/geometry.h"
#include "models/common/grid/inputs.h"
#include "models/common/grid/smart_resize.h"
#include "models/common/processor_file.h"

namespace fovea::common {

/// Limits of areas, in the units that the rules of the family count in.
struct GridLimits {
  PixelRange image;
  PixelRange video;
};

/// Everything that differs between the host sides of families over grids: numbers, and a rule where
/// no number says it.
struct GridProcessing {
  GridGeometry geometry;
  GridLimits limits;
  PixelScaling scaling;
  media::ResizeEngine engine = media::ResizeEngine::kTorchvision;
  media::ResizeFilter filter = media::ResizeFilter::kBicubic;
  /// Whether the reference leaves the patches of pixel_values in the order of the image, row by
  /// row, instead of token by token. Errors name rows in the latter order.
  bool row_major_values = false;
  /// Whether the reference describes items by a grid_thw, from which they can be planned, and gives
  /// their patches as fill_pixel_values reads them.
  bool has_grid_thw = true;
  /// Size of an image after resizing. @throws Error(kInvalidArgument) for one that is refused.
  std::function<Size2d(std::int64_t height_px, std::int64_t width_px)> image_size;
  /// The same for the frames of a video; empty: no videos.
  std::function<Size2d(std::int64_t num_frames, std::int64_t height_px, std::int64_t width_px)>
      video_size;
  /// Size of a frame of an item at the upper left of a black canvas, which has the size after
  /// resizing; empty: there is no canvas.
  std::function<Size2d(const ItemPlan& plan)> content_size;
  ViewsOf views_of;                    ///< empty: a unit is one grid
  std::int64_t least_view_tokens = 1;  ///< no view has fewer
  std::int64_t most_grid_side = std::numeric_limits<std::int64_t>::max();  ///< patches of a grid
  std::string video_refusal = {};  ///< why videos are refused all the same; empty: they are not
  /// ItemProcessor::sample_frames of a video of at least 1 frame, for a target above 0.
  std::function<std::vector<std::int64_t>(std::int64_t total_frames, double video_fps,
                                          double target_fps)>
      sample_frames;
  /// Seconds of a temporal patch, from those of its first and last frame; absent: the first.
  std::function<double(double first, double last)> timestamp = {};
  std::string assumptions;  ///< ItemProcessor::assumptions
  std::string sources;      ///< ItemProcessor::sources
};

/// @throws Error(kInvalidArgument) for a grid of more than `most` patches a side.
void check_grid_sides(std::int64_t height, std::int64_t width, std::int64_t most);

/// The host side of every family whose items are grids of patches: resized frames whose sides are
/// whole tokens, or frames on canvases whose sides are. An odd last frame of a video is repeated. A
/// family that does more overrides fill_frame.
class GridProcessor : public ItemProcessor {
 public:
  explicit GridProcessor(GridProcessing processing) : p_(std::move(processing)) {}

  [[nodiscard]] const GridProcessing& processing() const noexcept { return p_; }

  [[nodiscard]] ItemPlan plan_image(std::int64_t width_px, std::int64_t height_px) const override;
  /// @throws Error(kUnsupported) with processing().video_refusal.
  [[nodiscard]] ItemPlan plan_video(std::int64_t num_frames, std::int64_t width_px,
                                    std::int64_t height_px) const override;
  /// Every patch is kept as a tile of its own, of one frame for an image and of temporal_patch_size
  /// frames for a video. A repeated last frame counts as a frame. @throws as plan_video, and
  /// Error(kUnsupported) without processing().has_grid_thw, as fill_pixel_values.
  [[nodiscard]] ItemPlan plan_grid(Modality modality,
                                   const std::array<std::int64_t, 3>& grid) const override;
  [[nodiscard]] ItemPlan plan_patches(Modality modality, const std::array<std::int64_t, 3>& grid,
                                      std::int64_t patch_dim) const override;
  [[nodiscard]] std::vector<std::int64_t> sample_frames(std::int64_t total_frames, double video_fps,
                                                        double target_fps) const override;
  [[nodiscard]] std::vector<double> timestamps(
      std::span<const double> frame_seconds) const override;
  void fill_frame(const ItemPlan& plan, std::int64_t index, const RgbView& frame,
                  std::span<std::uint8_t> out) const override;
  void fill_pixel_values(const ItemPlan& plan, const ConstTensorView& values,
                         std::span<std::uint8_t> out) const override;
  [[nodiscard]] std::string assumptions() const override { return p_.assumptions; }
  [[nodiscard]] std::string sources() const override { return p_.sources; }

 private:
  /// Counts that follow from the resized size. @param num_frames frames whose bytes are kept.
  [[nodiscard]] ItemPlan make_plan(Modality modality, std::int64_t num_frames,
                                   std::int64_t source_width_px, std::int64_t source_height_px,
                                   Size2d resized) const;

  GridProcessing p_;
};

/// Counts the bytes and rows of `plan`, each of whose num_frames units has these views.
/// @throws Error(kInvalidArgument) for more bytes than an item can have.
void count_views(const GridGeometry& geometry, std::span<const ItemPlan> views, ItemPlan& plan);

/// Turns the processor's pixel_values of one item back into bytes: for every patch planes of
/// patch_size x patch_size values, [channel, kept frame, y, x].
/// @param plan of GridProcessor::plan_grid.
/// @param values [patches, patch_dim], a row is [channel, frame, y, x]; f32, f16 or bf16, or u8:
/// bytes that were not rescaled and normalised.
/// @throws Error(kInvalidArgument) for another shape, for a value that is no rescaled and
/// normalised byte, and for an image whose frames differ; the first such element is named.
/// Source: docs/reference/qwen_glm.md, "Patch rows".
void fill_pixel_values(const GridGeometry& geometry, const PixelScaling& scaling,
                       const ItemPlan& plan, const ConstTensorView& values,
                       std::span<std::uint8_t> out);

}  // namespace fovea::common
