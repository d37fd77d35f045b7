#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/common/grid/smart_resize.h"
#include "models/common/views/processing.h"
#include "models/idefics3/config.h"

namespace fovea::idefics3 {

/// How images and frames become square views.
struct Processing {
  common::ViewProcessing views;
  std::int64_t longest_edge = 4 * 364;        ///< of an image, before it is cut
  std::int64_t video_longest_edge = 4 * 364;  ///< of a frame, before it becomes a square
  bool do_image_splitting = true;             ///< false: every image is one view
  std::int64_t max_frames = 64;               ///< sampled of a video
  bool takes_videos = false;
};

/// @throws Error(kCorruptData) for wrong types and sizes out of bounds, Error(kUnsupported) for a
/// scaling under which an image can have the values of padding, and as
/// common::read_view_processing. Source: docs/reference/idefics3.md, "Processing".
[[nodiscard]] Processing read_processing(const checkpoint::HfConfig& files, const Config& config,
                                         const MediaOptions& media);

/// The size of an image whose longer side becomes `longest_edge`, at most 4096. The other side
/// follows, rounded down and then up to an even number.
/// Source: docs/reference/idefics3.md, "Processing".
[[nodiscard]] common::Size2d first_size(std::int64_t width_px, std::int64_t height_px,
                                        std::int64_t longest_edge);

/// The host side. Pixels of an image are its tiles, row by row of it, then the whole image, if it
/// has several; those of a video are its frames. plan.grid is (1, tile rows, tile columns) or
/// (frames, 1, 1).
class Processor final : public common::ViewProcessor {
 public:
  explicit Processor(const Processing& processing)
      : ViewProcessor(processing.views), p_(processing) {}

  [[nodiscard]] ItemPlan plan_image(std::int64_t width_px, std::int64_t height_px) const override;
  /// @throws Error(kUnsupported) for Idefics3, and where videos are processed otherwise than
  /// images.
  [[nodiscard]] ItemPlan plan_video(std::int64_t num_frames, std::int64_t width_px,
                                    std::int64_t height_px) const override;
  /// Evenly, at target_fps but no more than max_frames; without the first and the last second of a
  /// long video. Source: docs/reference/idefics3.md, "Sampled frames".
  [[nodiscard]] std::vector<std::int64_t> sample_frames(std::int64_t total_frames, double video_fps,
                                                        double target_fps) const override;
  void fill_frame(const ItemPlan& plan, std::int64_t index, const RgbView& frame,
                  std::span<std::uint8_t> out) const override;

 private:
  /// The size to which a frame of an item is resized first.
  [[nodiscard]] common::Size2d first_size_of(const ItemPlan& plan) const;

  Processing p_;
};

}  // namespace fovea::idefics3
