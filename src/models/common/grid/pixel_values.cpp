// The way back from the processor's floats to bytes, patch by patch. Rows keep their order: it is
// that of the tower.
#include "models/common/grid/processor.h"

#include <algorithm>
#include <vector>

#include "core/check.h"
#include "media/denormalize.h"

namespace fovea::common {

namespace {

/// Converts the patches of one item.
class PatchReader {
 public:
  PatchReader(const GridGeometry& geometry, const PixelScaling& scaling, DType dtype)
      : frames_(static_cast<std::size_t>(geometry.patch_frames())),
        plane_(static_cast<std::size_t>(geometry.patch_size * geometry.patch_size)),
        scaling_(scaling),
        table_(scaling.table()),
        bytes_(table_, dtype) {}

  /// @param patch [3, frames, plane], floats or bytes. @param tile [3, kept_frames, plane].
  template <class Value>
  void read(std::int64_t row, std::span<const Value> patch, std::size_t kept_frames,
            std::uint8_t* tile) const {
    for (std::size_t c = 0; c < 3; ++c) {
      const auto frames = patch.subspan(c * frames_ * plane_, frames_ * plane_);
      const auto values = frames.first(kept_frames * plane_);
      const std::size_t good = bytes_of(c, values, tile + c * values.size());
      if (good < values.size()) refuse(row, c, c * frames.size() + good, values[good]);
      if (kept_frames < frames_) check_repeated(row, c, frames);
    }
  }

 private:
  /// As Denormalizer::bytes_of.
  [[nodiscard]] std::size_t bytes_of(std::size_t channel, std::span<const float> values,
                                     std::uint8_t* out) const {
    return bytes_.bytes_of(channel, values, out);
  }
  [[nodiscard]] static std::size_t bytes_of(std::size_t /*channel*/,
                                            std::span<const std::uint8_t> values,
                                            std::uint8_t* out) {
    std::ranges::copy(values, out);
    return values.size();
  }

  [[noreturn]] void refuse(std::int64_t row, std::size_t c, std::size_t column, float value) const {
    const std::uint8_t byte = bytes_.nearest_byte(c, value);
    FOVEA_CHECK(false, kInvalidArgument, "pixel_values[", row, ", ", column, "] is ", value,
                ", expected the value of a byte: the nearest is ", table_[c][byte], " of ",
                int{byte}, " (mean ", scaling_.image_mean[c], ", std ", scaling_.image_std[c],
                ", rescale_factor ", scaling_.rescale_factor, ")");
  }

  /// @param frames all frames of a channel; only the first is kept.
  template <class Value>
  void check_repeated(std::int64_t row, std::size_t c, std::span<const Value> frames) const {
    const auto later = frames.subspan(plane_);
    const auto [other, before] = std::mismatch(later.begin(), later.end(), frames.begin());
    if (other == later.end()) return;
    FOVEA_CHECK(false, kInvalidArgument, "pixel_values[", row, ", ",
                c * frames.size() + plane_ + static_cast<std::size_t>(other - later.begin()),
                "] is ", +*other, ", expected ", +*before,
                " as in the frame before: an image repeats its frame");
  }

  std::size_t frames_;
  std::size_t plane_;
  const PixelScaling& scaling_;
  media::NormalizeTable table_;
  media::Denormalizer bytes_;
};

}  // namespace

void fill_pixel_values(const GridGeometry& geometry, const PixelScaling& scaling,
                       const ItemPlan& plan, const ConstTensorView& values,
                       std::span<std::uint8_t> out) {
  const Shape expected{plan.spec.input_rows, geometry.patch_dim()};
  FOVEA_CHECK(values.shape == expected, kInvalidArgument, "pixel_values must be ", expected,
              " for this grid, got ", values.shape);
  FOVEA_CHECK(plan.layout == PixelLayout::kPatches && out.size() == plan.pixel_bytes, kInternal,
              "pixel values need a plan of their grid and ", plan.pixel_bytes, " bytes, got ",
              out.size());
  const PatchReader reader(geometry, scaling, values.dtype);
  const auto kept_frames =
      static_cast<std::size_t>(std::min(plan.num_frames, geometry.patch_frames()));
  const std::size_t tile_bytes = out.size() / static_cast<std::size_t>(plan.spec.input_rows);
  std::vector<float> patch(static_cast<std::size_t>(geometry.patch_dim()));
  const std::byte* from = values.data;
  std::uint8_t* tile = out.data();
  for (std::int64_t row = 0; row < plan.spec.input_rows; ++row, tile += tile_bytes) {
    if (values.dtype == DType::kU8) {
      const auto* const bytes = reinterpret_cast<const std::uint8_t*>(from);
      reader.read(row, std::span(bytes, patch.size()), kept_frames, tile);
    } else {
      widen_to_f32(values.dtype, from, patch.data(), patch.size());
      reader.read(row, std::span<const float>(patch), kept_frames, tile);
    }
    from += patch.size() * size_of(values.dtype);
  }
}

}  // namespace fovea::common
