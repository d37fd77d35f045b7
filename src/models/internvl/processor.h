#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "checkpoint/hf_config.h"
#include "fovea/options.h"
#include "media/normalize.h"
#include "models/common/views/processing.h"
#include "models/internvl/config.h"

namespace fovea::internvl {

/// How images and frames become square views.
struct Processing {
  common::ViewProcessing views;
  std::int64_t min_tiles = 1;
  std::int64_t max_tiles = 12;
  bool use_thumbnail = true;  ///< the whole image as one more view, where it has several tiles
  media::NormalizeTable normalize{};
};

/// In the authors' format the numbers of tiles stand in config.json and the rest is fixed; in that
/// of transformers all stands in the processor files.
/// @throws Error(kCorruptData) for wrong types and numbers of tiles out of bounds,
/// Error(kUnsupported) for views of another size than the tower's.
/// Source: docs/reference/internvl.md, "Processing".
[[nodiscard]] Processing read_processing(const checkpoint::HfConfig& files, const Config& config,
                                         const MediaOptions& media);

/// The host side. Pixels of an image are its tiles, row by row of the image, then the thumbnail;
/// those of a video are its frames. plan.grid is (1, tile rows, tile columns) or (frames, 1, 1).
class Processor final : public common::ViewProcessor {
 public:
  explicit Processor(const Processing& processing)
      : ViewProcessor(processing.views), p_(processing) {}

  [[nodiscard]] ItemPlan plan_image(std::int64_t width_px, std::int64_t height_px) const override;
  /// @throws Error(kUnsupported) where videos are scaled otherwise than images.
  [[nodiscard]] ItemPlan plan_video(std::int64_t num_frames, std::int64_t width_px,
                                    std::int64_t height_px) const override;
  /// Evenly from the first frame to the last, at most 32.
  /// Source: docs/reference/internvl.md, "Sampled frames".
  [[nodiscard]] std::vector<std::int64_t> sample_frames(std::int64_t total_frames, double video_fps,
                                                        double target_fps) const override;

 private:
  Processing p_;
};

}  // namespace fovea::internvl
