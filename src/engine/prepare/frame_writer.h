#pragma once

#include <cstdint>

#include "fovea/media.h"
#include "fovea/options.h"
#include "fovea/tower/models/item_processor.h"

namespace fovea {

/// Takes the frames of an item one by one and resizes each into its place, so that no more than one
/// is kept. The size of the first frame fixes the plan.
class FrameWriter {
 public:
  /// @param item receives plan and pixels of `media`. All must outlive the writer.
  FrameWriter(const ItemProcessor& processor, const MediaItem& media, const MediaLimits& limits,
              PreparedItem& item)
      : processor_(processor), media_(media), limits_(limits), item_(item) {}

  /// Says how many frames there are; 1 without it. Frames that were added before count no more.
  /// @throws Error(kInvalidArgument) beyond the limit, and for an image of other than 1 frame.
  void expect(std::int64_t num_frames);

  /// The plan for frames of this size.
  /// @throws Error(kInvalidArgument) if the item would have more patches than the limit, and as the
  /// processor.
  [[nodiscard]] ItemPlan plan_for(std::int64_t width_px, std::int64_t height_px) const;

  /// Announces the full size of the next frame, before it is decoded where that can be.
  /// @throws as plan_for, Error(kInvalidArgument) if the frame before had another size.
  void announce(std::int64_t width_px, std::int64_t height_px);

  /// Resizes the next frame, which was announced, at full size or at a fraction that the plan
  /// allows.
  /// @throws as ItemProcessor::fill_frame and as check_interrupt.
  void add(const RgbView& frame);

  [[nodiscard]] std::int64_t num_frames() const noexcept { return num_frames_; }
  [[nodiscard]] double resize_ms() const noexcept { return resize_ms_; }

 private:
  const ItemProcessor& processor_;
  const MediaItem& media_;
  const MediaLimits& limits_;
  PreparedItem& item_;
  std::int64_t num_frames_ = 1;
  std::int64_t next_ = 0;
  bool is_planned_ = false;
  double resize_ms_ = 0;
};

}  // namespace fovea
