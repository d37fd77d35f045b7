#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/common/views/processing.h"
#include "models/common/views/tiles.h"
#include "models/llava/config.h"

namespace fovea::llava {

/// How images and frames become square views.
struct Processing {
  Format format = Format::kLlava;
  common::ViewProcessing views;
  std::int64_t shortest_edge = 0;        ///< before the centre is cut out; 0: the ratio is not kept
  std::vector<common::Tiling> canvases;  ///< none: an image is one view
  std::int64_t max_canvas_views = 0;     ///< as in Config
};

/// @throws Error(kCorruptData) for wrong types and canvases that contradict config.json,
/// Error(kUnsupported) for views of another size than the tower's, and as
/// common::read_view_processing. Source: docs/reference/llava.md, "Processing".
[[nodiscard]] Processing read_processing(const checkpoint::HfConfig& files, const Config& config,
                                         const MediaOptions& media);

/// Rows a side of a frame of a video, of which 2 x 2 of the tower become one.
[[nodiscard]] inline std::int64_t pooled_side(const common::SquareView& view) {
  return (view.grid() + 1) / 2;
}

/// The host side. Pixels of an image are the whole image and then the views of its canvas, row by
/// row of it, if it has one; those of a video are its frames. plan.grid is (1, rows, columns) of
/// the canvas or (frames, 1, 1). An image whose rows are shrunk is one unit.
class Processor final : public common::ViewProcessor {
 public:
  explicit Processor(const Processing& processing)
      : ViewProcessor(processing.views), p_(processing) {}

  /// @throws Error(kInvalidArgument) also for an image that is too long to be resized or shrunk.
  [[nodiscard]] ItemPlan plan_image(std::int64_t width_px, std::int64_t height_px) const override;
  /// @throws Error(kUnsupported) but for LLaVA-OneVision, and there where videos are processed
  /// otherwise than images.
  [[nodiscard]] ItemPlan plan_video(std::int64_t num_frames, std::int64_t width_px,
                                    std::int64_t height_px) const override;
  /// Evenly from the first frame to the last, at most 32.
  [[nodiscard]] std::vector<std::int64_t> sample_frames(std::int64_t total_frames, double video_fps,
                                                        double target_fps) const override;
  void fill_frame(const ItemPlan& plan, std::int64_t index, const RgbView& frame,
                  std::span<std::uint8_t> out) const override;

 private:
  [[nodiscard]] ItemPlan plan_square(std::int64_t width_px, std::int64_t height_px) const;
  void fill_square(const ItemPlan& plan, const RgbView& image, std::span<std::uint8_t> out) const;
  void fill_canvas(const ItemPlan& plan, const RgbView& image, std::span<std::uint8_t> out) const;

  Processing p_;
};

}  // namespace fovea::llava
