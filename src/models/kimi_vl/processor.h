#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <utility>

#include "checkpoint/hf_config.h"
#include "fovea/options.h"
#include "models/common/grid/processor.h"

namespace fovea::kimi_vl {

/// Grids of Kimi-VL with more patches a side are beyond the reference's table of angles.
inline constexpr std::int64_t kMostGridSide = 511;

/// Size of an image, or of the frames of a video, before padding.
/// @throws Error(kInvalidArgument) for one that cannot be.
using ContentSize = std::function<common::Size2d(std::int64_t height_px, std::int64_t width_px)>;

/// Sizes and scaling of images and videos, from the processor files.
struct Processing {
  common::GridProcessing grid;  ///< image_size and video_size give the canvas, padding included
  ContentSize image_content;
  ContentSize video_content = {};
  std::int64_t most_grid_side = kMostGridSide;  ///< patches of a canvas
};

/// Reads the file of Kimi-VL. @throws Error(kCorruptData) naming the key for wrong types and for
/// sizes that contradict `geometry`, Error(kUnsupported) if images are to be cropped instead of
/// padded. Source: docs/reference/kimi_vl.md, "Processing".
[[nodiscard]] Processing read_processing(const checkpoint::HfConfig& files,
                                         const common::GridGeometry& geometry,
                                         const MediaOptions& media);

/// Reads the files of Kimi-K2.5: media_proc_cfg of published ones, or those that transformers
/// writes.
/// @throws as read_processing, and Error(kUnsupported) for fixed numbers of tokens and for other
/// steps than those of the reference's classes. Limits that depend on the length of a video are no
/// error but processing.grid.video_refusal.
/// Source: docs/reference/kimi_vl.md, "Kimi-K2.5".
[[nodiscard]] Processing read_k25_processing(const checkpoint::HfConfig& files,
                                             const common::GridGeometry& geometry,
                                             const MediaOptions& media);

/// The size of a canvas for `content`, for GridProcessing::image_size.
[[nodiscard]] ContentSize canvas_of(const common::GridGeometry& geometry, ContentSize content,
                                    std::int64_t most_grid_side);

/// Requires the number that the tower has, where the file has the key.
/// @throws Error(kCorruptData) naming the key for another.
void check_same(const JsonView& file, std::string_view key, std::int64_t expected);

/// Images and frames at the upper left of a black canvas whose sides are whole tokens.
class Processor final : public common::GridProcessor {
 public:
  explicit Processor(Processing processing)
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

}  // namespace fovea::kimi_vl
