#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "checkpoint/hf_config.h"
#include "fovea/tower/models/item_processor.h"
#include "models/common/views/processing.h"
#include "models/molmo2/config.h"
#include "models/molmo2/pooling.h"

namespace fovea::molmo2 {

/// How images become a view and overlapping crops, and frames a view each.
struct Processing {
  common::ViewProcessing views;
  Overlap overlap;
  std::int64_t max_crops = 8;
  PoolingSize image_pooling{2, 2};
  PoolingSize video_pooling{3, 3};
  std::int64_t max_frames = 64;  ///< of a video, after sampling
  bool raw_videos = false;       ///< the tower reads bytes of frames as they are, from 0 to 255
};

/// @throws Error(kCorruptData) naming the key for wrong types, Error(kUnsupported) for sizes that
/// contradict `config`, for crops without a window, another filter, and steps that are switched
/// off. Source: docs/reference/molmo2.md, "Processing".
[[nodiscard]] Processing read_processing(const checkpoint::HfConfig& files, const Config& config);

/// The host side. Pixels of an image are those of the whole image as one view, then of its crops,
/// row by row; plan.grid is (1, crop rows, crop columns). Those of a video are a view per frame,
/// which is its unit; plan.grid is (frames, 1, 1).
class Processor final : public common::ViewProcessor {
 public:
  explicit Processor(const Processing& processing);

  [[nodiscard]] const Processing& processing() const noexcept { return p_; }

  /// Source of the tiling of crops: docs/reference/molmo2.md, "Crops".
  [[nodiscard]] ItemPlan plan_image(std::int64_t width_px, std::int64_t height_px) const override;
  [[nodiscard]] ItemPlan plan_video(std::int64_t num_frames, std::int64_t width_px,
                                    std::int64_t height_px) const override;
  [[nodiscard]] std::vector<std::int64_t> sample_frames(std::int64_t total_frames, double video_fps,
                                                        double target_fps) const override;
  void fill_frame(const ItemPlan& plan, std::int64_t index, const RgbView& frame,
                  std::span<std::uint8_t> out) const override;

  /// The patches of every token of a whole image, or of `units` frames of a video.
  /// @param first patch of the item in its batch.
  void add_tokens(const ItemPlan& plan, std::int64_t units, std::int64_t first,
                  TokenPatches& to) const;
  /// The most views that items of so many tokens have together.
  [[nodiscard]] std::int64_t most_views(std::int64_t tokens) const;

 private:
  [[nodiscard]] std::int64_t image_tokens(common::Tiling tiling) const;
  [[nodiscard]] std::int64_t frame_tokens() const;

  Processing p_;
  std::vector<common::Tiling> tilings_;  // of crops: fewer of them first, then fewer rows
};

}  // namespace fovea::molmo2
