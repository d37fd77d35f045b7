#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fovea/tower/models/encoder_graph_model.h"

namespace fovea::test {

using Grid = std::array<std::int64_t, 3>;  ///< frames, rows and columns of patches

struct MockOptions {
  std::int64_t hidden = 32;
  std::int64_t width = 48;  ///< elements of a pixel row
  std::vector<Modality> modalities = {Modality::kImage, Modality::kVideo};
  std::int64_t max_frames_per_video = 4;
  bool byte_pixels = false;  ///< rows of bytes, normalised by the forward
  /// Test hooks.
  std::string forgotten_buffer = {};       ///< fill_inputs leaves it out
  bool declare_twice = false;              ///< two buffers of one name
  std::int64_t narrow_rows_by = 0;         ///< "pixel_values" is declared that much too small
  std::int64_t narrow_only_at = 0;         ///< ... only for a capacity of so many items; 0: always
  std::function<void()> before_fill = {};  ///< called by every fill_inputs
  std::function<void()> in_forward = {};   ///< called in every forward, to size it, too
  std::shared_ptr<double> clock_ms = {};   ///< a forward that runs adds its capacity in tokens ...
  double launch_ms = 0;                    ///< ... and submitting one adds this
};

/// The model "M" of the encoder graph specification, section 12: merge 2, a linear layer on rows,
/// then the mean over groups of 4 rows. So that stale offsets show, each output row also gets the
/// length of its attention sequence. Rows are f32. A unit is a frame.
class MockModel final : public EncoderGraphModel, public ItemProcessor {
 public:
  explicit MockModel(MockOptions options = {});

  /// An item of random pixels that depend on `seed` alone.
  [[nodiscard]] PreparedItem make_item(Grid grid, std::uint64_t seed) const;
  /// Rows of one item by a plain loop that shares no code with graphs and buffers.
  [[nodiscard]] std::vector<float> reference(const PreparedItem& item) const;

  [[nodiscard]] const GraphSpec& graph_spec() const noexcept override { return spec_; }
  [[nodiscard]] const ItemProcessor& processor() const noexcept override { return *this; }
  /// Pixels are patches: an image of w x h is the grid [1, h, w], cut to even sides.
  [[nodiscard]] ItemPlan plan_image(std::int64_t width_px, std::int64_t height_px) const override;
  [[nodiscard]] ItemPlan plan_video(std::int64_t num_frames, std::int64_t width_px,
                                    std::int64_t height_px) const override;
  void fill_frame(const ItemPlan&, std::int64_t, const RgbView&,
                  std::span<std::uint8_t>) const override {}
  [[nodiscard]] std::int64_t path_width(PathId) const override { return options_.hidden; }
  [[nodiscard]] std::vector<BufferDecl> inputs(PathId path,
                                               const GraphCapacity& capacity) const override;
  void fill_inputs(PathId path, const GraphCapacity& capacity, std::span<const ItemPart> parts,
                   InputWriter& writer) const override;
  void forward(ExecContext& ctx, PathId path, const GraphCapacity& capacity, const NamedTensors& in,
               TensorView out) const override;

  /// Forwards that have run, and the pixel rows they took for live.
  [[nodiscard]] std::int64_t forwards_run() const noexcept { return forwards_run_; }
  [[nodiscard]] std::int64_t rows_run() const noexcept { return rows_run_; }
  /// Forwards that were submitted for a recording, as rehearsals or as the recording itself.
  [[nodiscard]] std::int64_t forwards_recorded() const noexcept { return forwards_recorded_; }

 private:
  [[nodiscard]] float value(const std::byte* row, std::int64_t column) const;
  void project(const std::byte* row, float* out) const;
  [[nodiscard]] std::int64_t row_bytes() const;

  MockOptions options_;
  GraphSpec spec_;
  std::vector<float> weight_;  // [hidden, width]
  mutable std::int64_t forwards_run_ = 0;
  mutable std::int64_t rows_run_ = 0;
  mutable std::int64_t forwards_recorded_ = 0;
};

}  // namespace fovea::test
