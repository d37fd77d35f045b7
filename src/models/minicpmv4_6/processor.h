#pragma once

#include <cstdint>
#include <span>

#include "checkpoint/hf_config.h"
#include "fovea/options.h"
#include "models/common/grid/processor.h"
#include "models/common/views/tiles.h"

namespace fovea::minicpmv4_6 {

/// How a processor file cuts images, or frames. Keys are named as there.
struct Slicing {
  std::int64_t max_slice_nums = 9;
  std::int64_t scale_resolution = 448;  ///< a view has about the area of this square, in pixels
  bool slice_mode = true;
  std::int64_t max_num_frames = 128;  ///< of a video
};

/// Sizes, slices and scaling, from the processor files.
struct Processing {
  common::GridProcessing grid;  ///< with the views of a frame
  Slicing image;
  Slicing video;
};

/// @throws Error(kCorruptData) naming the key for wrong types and for sizes that contradict
/// `geometry`, Error(kUnsupported) for steps that are switched off, and for another filter or
/// number of tokens. Source: docs/reference/minicpmv4_6.md, "Processing".
[[nodiscard]] Processing read_processing(const checkpoint::HfConfig& files,
                                         const common::GridGeometry& geometry,
                                         const MediaOptions& media);

/// An image is a view of the whole and, where it is large, slices in reading order; a frame of a
/// video is the same, and a unit. plan.grid is (frames, slice rows, slice columns), and has one
/// slice where there are none. The model takes no pixel values.
class Processor final : public common::GridProcessor {
 public:
  explicit Processor(const Processing& processing)
      : GridProcessor(processing.grid), p_(processing) {}

  [[nodiscard]] ItemPlan plan_image(std::int64_t width_px, std::int64_t height_px) const override;
  [[nodiscard]] ItemPlan plan_video(std::int64_t num_frames, std::int64_t width_px,
                                    std::int64_t height_px) const override;
  void fill_frame(const ItemPlan& plan, std::int64_t index, const RgbView& frame,
                  std::span<std::uint8_t> out) const override;

 private:
  Processing p_;
};

}  // namespace fovea::minicpmv4_6
