#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "fovea/media.h"
#include "fovea/options.h"
#include "fovea/reports.h"
#include "fovea/tower/models/item_processor.h"

namespace fovea {

/// Requires a number of frames that an item of this modality and the limits allow.
/// @throws Error(kInvalidArgument).
void check_frames(const MediaItem& media, std::int64_t num_frames, const MediaLimits& limits);

/// Whether the units of an item can be prepared a few at a time: whether they are frames of a
/// video, on one path.
[[nodiscard]] bool is_row_of_frames(const ItemPlan& plan) noexcept;

/// The plan of an item of this size. @param name for messages.
/// @throws Error(kInvalidArgument) if the item would have more patches than the limit, and as the
/// processor.
[[nodiscard]] ItemPlan plan_size(const ItemProcessor& processor, const ItemSize& size,
                                 const std::string& name, const MediaLimits& limits);

/// What is known of an item ahead, and what of it is wanted.
struct ItemAhead {
  const ItemPlan* plan = nullptr;  ///< null: none
  UnitRange units = {};  ///< of the plan, which then is right or the item fails; none: all

  /// Whether a part of the pixels is wanted: units of another kind than frames are prepared with
  /// all others.
  [[nodiscard]] bool is_part() const noexcept { return units.count > 0 && is_row_of_frames(*plan); }
};

/// The plan as far as these units go: the sizes that packing works with, and the pixels that are
/// prepared for them. @param units as ItemAhead.
[[nodiscard]] ItemPlan plan_of_units(const ItemPlan& plan, const UnitRange& units);

/// Takes the frames of an item one by one and resizes each into its place, so that no more than one
/// is kept. The size of the first frame fixes the plan.
class FrameWriter {
 public:
  /// Takes units of a video whose frames are complete: the item holds their pixels alone.
  using Sink = std::function<void(PreparedItem units, const UnitRange& range)>;

  /// @param item receives plan and pixels of `media`. @param ahead of the item; the plan is used if
  /// it is of the frames that come. All must outlive the writer.
  FrameWriter(const ItemProcessor& processor, const MediaItem& media, const MediaLimits& limits,
              PreparedItem& item, const ItemAhead& ahead = {})
      : processor_(processor), media_(media), limits_(limits), item_(item), ahead_(ahead) {
    if (ahead.plan != nullptr) plan_ = *ahead.plan;
  }

  /// Says how many frames there are; 1 without it. Frames that were added before count no more, nor
  /// do units that were sent. Where a part of the pixels is wanted, its frames alone are to come.
  /// @throws as check_frames.
  void expect(std::int64_t num_frames);

  /// The plan for frames of this size, which is kept for those that come. @throws as plan_size.
  [[nodiscard]] const ItemPlan& plan_for(std::int64_t width_px, std::int64_t height_px);

  /// Announces the full size of the next frame, before it is decoded where that can be.
  /// @throws as plan_for, Error(kInvalidArgument) if the frame before had another size.
  void announce(std::int64_t width_px, std::int64_t height_px);

  /// Resizes the next frame, which was announced, at full size or at a fraction that the plan
  /// allows.
  /// @throws as ItemProcessor::fill_frame and as check_interrupt.
  void add(const RgbView& frame);

  /// From now on units go to `sink` as they are complete, and the item keeps none.
  /// @param most_bytes of their pixels at a time, but for a single unit.
  void send_units(Sink sink, std::size_t most_bytes) {
    sink_ = std::move(sink);
    most_bytes_ = most_bytes;
  }

  [[nodiscard]] std::int64_t num_frames() const noexcept { return num_frames_; }
  /// The frames that are to come: from next_frame() up to end_frame().
  [[nodiscard]] std::int64_t next_frame() const noexcept { return next_; }
  [[nodiscard]] std::int64_t end_frame() const noexcept { return end_; }
  [[nodiscard]] double resize_ms() const noexcept { return resize_ms_; }

 private:
  void add_to_units(const RgbView& frame);

  const ItemProcessor& processor_;
  const MediaItem& media_;
  const MediaLimits& limits_;
  PreparedItem& item_;
  ItemAhead ahead_;
  std::optional<ItemPlan> plan_;  // the last one, of frames that may not be those that come
  std::int64_t num_frames_ = 1;
  std::int64_t next_ = 0;
  std::int64_t end_ = 1;
  Sink sink_;
  std::size_t most_bytes_ = 0;
  PreparedItem units_;  // those that are not complete
  bool is_planned_ = false;
  double resize_ms_ = 0;
};

}  // namespace fovea
