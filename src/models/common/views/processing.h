#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "checkpoint/hf_config.h"
#include "fovea/options.h"
#include "fovea/tower/models/item_processor.h"
#include "media/resize/resize.h"
#include "models/common/geometry.h"
#include "models/common/processor_file.h"

namespace fovea::common {

/// How images become square views where a processor file of transformers says it.
struct ViewProcessing {
  SquareView view;
  media::ResizeEngine engine = media::ResizeEngine::kTorchvision;
  media::ResizeFilter filter = media::ResizeFilter::kBicubic;
  PixelScaling scaling = {};
  std::string assumptions = {};    ///< ItemProcessor::assumptions
  std::string sources = {};        ///< ItemProcessor::sources
  std::string video_refusal = {};  ///< why videos are refused; empty: they are not
};

/// A processor class of the reference.
struct ViewProcessorClass {
  media::ResizeFilter filter = media::ResizeFilter::kBicubic;  ///< no other is supported
  PixelScaling scaling{};                                      ///< where a file is silent
  PixelScaling without_file{};  ///< where there is none: what the released checkpoints have
};

/// @param view of the tower, whose size the file may repeat.
/// @param keys that the family reads itself, for `sources`.
/// @throws Error(kCorruptData) for wrong types, Error(kUnsupported) for views of another size than
/// the tower's, another filter, and steps that are switched off.
[[nodiscard]] ViewProcessing read_view_processing(const checkpoint::HfConfig& files,
                                                  const SquareView& view, const MediaOptions& media,
                                                  const ViewProcessorClass& reference,
                                                  std::initializer_list<std::string_view> keys);

/// Adds what the processor file of videos says, whose frames are to become views as images do, to
/// `sources` and `video_refusal`. @throws as read_scaling.
void read_video_views(const checkpoint::HfConfig& files, ViewProcessing& processing);

/// The host side of a family over views of one size, but for their number.
class ViewProcessor : public ItemProcessor {
 public:
  [[nodiscard]] std::string assumptions() const final { return processing_.assumptions; }
  [[nodiscard]] std::string sources() const final { return processing_.sources; }
  /// The tiles of plan.grid, row by row of the image, and then, where there is room for it, the
  /// whole image; of a video its frames.
  void fill_frame(const ItemPlan& plan, std::int64_t index, const RgbView& frame,
                  std::span<std::uint8_t> out) const override;

 protected:
  explicit ViewProcessor(ViewProcessing processing) : processing_(std::move(processing)) {}

  [[nodiscard]] const ViewProcessing& processing() const noexcept { return processing_; }
  /// A video with a view for every frame; plan.grid is (frames, 1, 1).
  /// @throws Error(kUnsupported) with processing().video_refusal, Error(kInvalidArgument) for a
  /// video without frames or area.
  [[nodiscard]] ItemPlan plan_frames(std::int64_t num_frames, std::int64_t width_px,
                                     std::int64_t height_px) const;
  /// Resizes an image to the sides of a view, without keeping its ratio.
  /// @param out [side, side, 3].
  void fill_view(const RgbView& image, std::span<std::uint8_t> out) const;

 private:
  ViewProcessing processing_;
};

}  // namespace fovea::common
