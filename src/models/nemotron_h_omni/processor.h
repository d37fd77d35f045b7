#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "checkpoint/hf_config.h"
#include "models/common/grid/processor.h"
#include "models/nemotron_h_omni/config.h"

namespace fovea::nemotron_h_omni {

/// How images and frames become grids, from the processor files and config.json.
struct Processing {
  common::GridProcessing grid;  ///< its views are images and pairs of frames
  std::int64_t class_rows = 0;  ///< that begin every sequence
};

/// @throws Error(kCorruptData) naming the key for wrong types and for sizes that contradict
/// `config`, Error(kUnsupported) for steps that are switched off and for another filter.
/// Source: docs/reference/nemotron_h_omni.md, "Processing".
[[nodiscard]] Processing read_processing(const checkpoint::HfConfig& files, const Config& config);

/// Frames are resized in floats and kept as levels of several bytes (media::resize_rgb_fine), one
/// frame after the other: one of an image, pairs of a video, whose odd last frame comes twice. The
/// model takes no pixel values.
class Processor final : public common::GridProcessor {
 public:
  explicit Processor(Processing p) : GridProcessor(std::move(p.grid)), class_rows_(p.class_rows) {}

  [[nodiscard]] std::int64_t class_rows() const noexcept { return class_rows_; }
  /// Bytes of a frame.
  [[nodiscard]] static std::int64_t frame_bytes(const ItemPlan& plan);

  [[nodiscard]] ItemPlan plan_image(std::int64_t width_px, std::int64_t height_px) const override;
  [[nodiscard]] ItemPlan plan_video(std::int64_t num_frames, std::int64_t width_px,
                                    std::int64_t height_px) const override;
  void fill_frame(const ItemPlan& plan, std::int64_t index, const RgbView& frame,
                  std::span<std::uint8_t> out) const override;

 private:
  std::int64_t class_rows_;
};

}  // namespace fovea::nemotron_h_omni
