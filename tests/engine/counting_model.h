#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "fovea/tower/models/encoder_graph_model.h"

namespace fovea::test {

/// A model that counts what its processor does; it prepares items and does nothing else.
/// Thread-safe.
class CountingModel final : public EncoderGraphModel, public ItemProcessor {
 public:
  explicit CountingModel(const EncoderGraphModel& model)
      : model_(model), processor_(model.processor()) {}

  [[nodiscard]] int plans() const { return plans_; }
  /// Frames that were resized.
  [[nodiscard]] int frames() const { return frames_; }

  [[nodiscard]] const ItemProcessor& processor() const noexcept override { return *this; }
  [[nodiscard]] ItemPlan plan_image(std::int64_t width_px, std::int64_t height_px) const override {
    ++plans_;
    return processor_.plan_image(width_px, height_px);
  }
  [[nodiscard]] ItemPlan plan_video(std::int64_t num_frames, std::int64_t width_px,
                                    std::int64_t height_px) const override {
    ++plans_;
    return processor_.plan_video(num_frames, width_px, height_px);
  }
  [[nodiscard]] ItemPlan plan_grid(Modality modality,
                                   const std::array<std::int64_t, 3>& grid) const override {
    ++plans_;
    return processor_.plan_grid(modality, grid);
  }
  [[nodiscard]] std::vector<std::int64_t> sample_frames(std::int64_t total, double video_fps,
                                                        double fps) const override {
    return processor_.sample_frames(total, video_fps, fps);
  }
  [[nodiscard]] std::vector<double> timestamps(
      std::span<const double> frame_seconds) const override {
    return processor_.timestamps(frame_seconds);
  }
  void fill_frame(const ItemPlan& plan, std::int64_t index, const RgbView& frame,
                  std::span<std::uint8_t> out) const override {
    processor_.fill_frame(plan, index, frame, out);
    ++frames_;
  }
  void fill_pixel_values(const ItemPlan& plan, const ConstTensorView& values,
                         std::span<std::uint8_t> out) const override {
    processor_.fill_pixel_values(plan, values, out);
  }

  [[nodiscard]] const GraphSpec& graph_spec() const noexcept override {
    return model_.graph_spec();
  }
  [[nodiscard]] std::int64_t path_width(PathId path) const override {
    return model_.path_width(path);
  }
  [[nodiscard]] std::vector<BufferDecl> inputs(PathId path,
                                               const GraphCapacity& capacity) const override {
    return model_.inputs(path, capacity);
  }
  void fill_inputs(PathId, const GraphCapacity&, std::span<const ItemPart>,
                   InputWriter&) const override {}
  void forward(ExecContext&, PathId, const GraphCapacity&, const NamedTensors&,
               TensorView) const override {}

 private:
  const EncoderGraphModel& model_;
  const ItemProcessor& processor_;
  mutable std::atomic<int> plans_ = 0;
  mutable std::atomic<int> frames_ = 0;
};

}  // namespace fovea::test
