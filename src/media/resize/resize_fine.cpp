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

/// The cubic convolution kernel at a distance of at most 2.
float cubic(float distance, float a) {
  const float x = std::abs(distance);
  if (x >= 2) return 0;
  if (x >= 1) return ((x - 5) * x + 8) * x * a - 4 * a;
  return ((a + 2) * x - (a + 3)) * x * x + 1;
}

/// Taps whose filter widens where an axis shrinks.
std::vector<Taps> make_wide_taps(std::int64_t in_size, std::int64_t out_size, bool is_cubic) {
  const float scale = static_cast<float>(in_size) / static_cast<float>(out_size);
  const float widening = std::max(scale, 1.0f);
  const float support = is_cubic ? 2 * widening : widening;
  const float inverse = 1.0f / widening;
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
      taps.weights.push_back(is_cubic ? cubic(distance, -0.5f)
                                      : std::max(0.0f, 1.0f - std::abs(distance)));
      sum += taps.weights.back();
    }
    for (float& weight : taps.weights) weight /= sum;
  }
  return all;
}

/// Four taps around every place, of which those beyond an edge become one with the edge.
std::vector<Taps> make_plain_taps(std::int64_t in_size, std::int64_t out_size) {
  const float scale = static_cast<float>(in_size) / static_cast<float>(out_size);
  std::vector<Taps> all(static_cast<std::size_t>(out_size));
  for (std::int64_t i = 0; i < out_size; ++i) {
    const float place = scale * (static_cast<float>(i) + 0.5f) - 0.5f;
    const auto left = static_cast<std::int64_t>(std::floor(place));
    const float t = place - static_cast<float>(left);
    Taps& taps = all[static_cast<std::size_t>(i)];
    taps.first = std::clamp<std::int64_t>(left - 1, 0, in_size - 1);
    const std::int64_t last = std::clamp<std::int64_t>(left + 2, 0, in_size - 1);
    taps.weights.resize(static_cast<std::size_t>(last - taps.first + 1));
    for (std::int64_t j = -1; j <= 2; ++j) {
      const std::int64_t from = std::clamp<std::int64_t>(left + j, 0, in_size - 1);
      taps.weights[static_cast<std::size_t>(from - taps.first)] +=
          cubic(t - static_cast<float>(j), -0.75f);
    }
  }
  return all;
}

std::vector<Taps> make_taps(std::int64_t in_size, std::int64_t out_size, FineFilter filter) {
  if (filter == FineFilter::kPlainBicubic) return make_plain_taps(in_size, out_size);
  return make_wide_taps(in_size, out_size, filter == FineFilter::kBicubic);
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
        taps_x_(make_taps(args.src_width_px, args.dst_width_px, args.filter)),
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
void store_levels(const std::vector<float>& levels, const LevelScale& scale, std::uint8_t* out,
                  std::size_t plane) {
  constexpr float kSteps = 65536;
  constexpr float kMost = 256 * kSteps - 1;
  for (const float level : levels) {
    const float place = (level - scale.first) / scale.step;
    const auto steps =
        static_cast<std::uint32_t>(std::clamp(std::nearbyint(place * kSteps), 0.0f, kMost));
    out[0] = static_cast<std::uint8_t>(steps >> 16u);
    out[plane] = static_cast<std::uint8_t>(steps >> 8u & 255u);
    out[2 * plane] = static_cast<std::uint8_t>(steps & 255u);
    ++out;
  }
}

/// The levels of the source, as they are.
void copy_levels(const ResizeFineArgs& args) {
  const auto row = static_cast<std::size_t>(args.src_width_px * kChannels);
  std::vector<float> levels(row);
  for (std::size_t at = 0; at < args.src.size(); at += row) {
    check_interrupt();
    std::ranges::copy(args.src.subspan(at, row), levels.begin());
    store_levels(levels, level_scale(args.filter), args.dst.data() + at, args.src.size());
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
    copy_levels(args);
    return;
  }
  const auto width = static_cast<std::size_t>(args.dst_width_px * kChannels);
  const std::vector<Taps> taps_y = make_taps(args.src_height_px, args.dst_height_px, args.filter);
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
    store_levels(levels, level_scale(args.filter), out, args.dst.size() / kLevelBytes);
    out += width;
  }
}

}  // namespace fovea::media
