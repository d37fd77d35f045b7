// Separable resize in f32. Filter weights are computed in f32 as well, because in double they
// differ from the reference's by more than all that is rounded here; this file is compiled without
// contraction of multiplications and additions into FMAs.
#include "media/resize/resize_fine.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/check.h"
#include "core/interrupt.h"

namespace fovea::media {
namespace {

constexpr std::int64_t kChannels = 3;

/// Source pixels of one result pixel, and their weights.
struct Taps {
  std::int64_t first = 0;
  std::vector<float> weights;
};

std::vector<Taps> make_taps(std::int64_t in_size, std::int64_t out_size) {
  const float scale = static_cast<float>(in_size) / static_cast<float>(out_size);
  const float support = std::max(scale, 1.0f);
  const float inverse = 1.0f / support;
  std::vector<Taps> all(static_cast<std::size_t>(out_size));
  for (std::int64_t i = 0; i < out_size; ++i) {
    Taps& taps = all[static_cast<std::size_t>(i)];
    const float centre = scale * (static_cast<float>(i) + 0.5f);
    // Cut off after adding a half, as the reference does; std::lround differs below zero.
    const float left = centre - support + 0.5f;
    const float right = centre + support + 0.5f;
    taps.first = std::max<std::int64_t>(static_cast<std::int64_t>(left), 0);
    const auto end = std::min(static_cast<std::int64_t>(right), in_size);
    float sum = 0;
    for (std::int64_t j = taps.first; j < end; ++j) {
      const float distance = (static_cast<float>(j) - centre + 0.5f) * inverse;
      taps.weights.push_back(std::max(0.0f, 1.0f - std::abs(distance)));
      sum += taps.weights.back();
    }
    for (float& weight : taps.weights) weight /= sum;
  }
  return all;
}

/// One row along x: out[x] = sum_j w_x[j] in[first_x + j], [taps.size(), 3].
void filter_row(const std::vector<Taps>& taps, const std::uint8_t* in, float* out) {
  for (const Taps& t : taps) {
    const std::uint8_t* pixel = in + t.first * kChannels;
    float sum[kChannels] = {};
    for (const float weight : t.weights) {
      for (float& channel : sum) channel += weight * static_cast<float>(*pixel++);
    }
    out = std::copy_n(sum, kChannels, out);
  }
}

/// The source rows, filtered along x, that the last rows of the result were made of. The rows that
/// a row of the result needs begin and end no earlier than those of the row before.
class FilteredRows {
 public:
  /// @param taps_y for which rows are asked.
  FilteredRows(const ResizeFineArgs& args, const std::vector<Taps>& taps_y)
      : args_(args),
        taps_x_(make_taps(args.src_width_px, args.dst_width_px)),
        kept_(std::ranges::max(taps_y, {}, [](const Taps& t) { return t.weights.size(); })
                  .weights.size()),
        row_floats_(static_cast<std::size_t>(args.dst_width_px * kChannels)),
        memory_(kept_ * row_floats_) {}

  /// A row of the source, [dst_width_px, 3]; valid until a later one is asked for.
  [[nodiscard]] const float* operator[](std::int64_t y) {
    for (next_ = std::max(next_, y + 1 - static_cast<std::int64_t>(kept_)); next_ <= y; ++next_) {
      const std::uint8_t* const in = args_.src.data() + next_ * args_.src_width_px * kChannels;
      filter_row(taps_x_, in, place_of(next_));
    }
    return place_of(y);
  }

 private:
  [[nodiscard]] float* place_of(std::int64_t y) {
    return memory_.data() + static_cast<std::size_t>(y) % kept_ * row_floats_;
  }

  const ResizeFineArgs& args_;
  std::vector<Taps> taps_x_;
  std::size_t kept_;  // rows
  std::size_t row_floats_;
  std::vector<float> memory_;
  std::int64_t next_ = 0;  // those before are filtered, or not needed
};

/// Writes one row of levels into the planes of its bytes, which are `plane` bytes apart.
void store_levels(const std::vector<float>& levels, std::uint8_t* out, std::size_t plane) {
  constexpr float kSteps = 65536;
  for (const float level : levels) {
    const auto steps =
        static_cast<std::uint32_t>(std::clamp(std::nearbyint(level * kSteps), 0.0f, 255 * kSteps));
    out[0] = static_cast<std::uint8_t>(steps >> 16u);
    out[plane] = static_cast<std::uint8_t>(steps >> 8u & 255u);
    out[2 * plane] = static_cast<std::uint8_t>(steps & 255u);
    ++out;
  }
}

void check_image(const char* which, std::int64_t width_px, std::int64_t height_px,
                 std::size_t num_bytes, std::size_t planes) {
  FOVEA_CHECK(width_px >= 1 && height_px >= 1, kInvalidArgument, "resize: ", which,
              " must have sides >= 1, got ", width_px, " x ", height_px);
  const std::size_t expected = static_cast<std::size_t>(width_px * height_px * kChannels) * planes;
  FOVEA_CHECK(num_bytes == expected, kInvalidArgument, "resize: ", which, " of ", width_px, " x ",
              height_px, " pixels must have ", expected, " bytes, got ", num_bytes);
}

}  // namespace

void resize_rgb_fine(const ResizeFineArgs& args) {
  check_image("source", args.src_width_px, args.src_height_px, args.src.size(), 1);
  check_image("result", args.dst_width_px, args.dst_height_px, args.dst.size(), kLevelBytes);
  if (args.src_width_px == args.dst_width_px && args.src_height_px == args.dst_height_px) {
    std::fill(std::ranges::copy(args.src, args.dst.begin()).out, args.dst.end(), std::uint8_t{0});
    return;
  }
  const auto width = static_cast<std::size_t>(args.dst_width_px * kChannels);
  const std::vector<Taps> taps_y = make_taps(args.src_height_px, args.dst_height_px);
  FilteredRows rows(args, taps_y);
  std::vector<float> levels(width);
  std::uint8_t* out = args.dst.data();
  for (const Taps& taps : taps_y) {
    check_interrupt();
    std::ranges::fill(levels, 0.0f);
    std::int64_t y = taps.first;
    for (const float weight : taps.weights) {
      const float* const row = rows[y++];
      for (std::size_t i = 0; i < width; ++i) levels[i] += weight * row[i];
    }
    store_levels(levels, out, args.dst.size() / kLevelBytes);
    out += width;
  }
}

}  // namespace fovea::media
