// Bilinear resize between four neighbours. Places, weights and sums round where torch's kernel
// rounds, which fuses multiplications and additions; double arithmetic does the same on any
// processor, because its products are exact.
#include "media/resize/resize_plain.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/check.h"
#include "core/interrupt.h"

namespace fovea::media {
namespace {

constexpr std::int64_t kRgb = 3;

/// a * b + c, rounded once.
float fused(float a, float b, float c) { return static_cast<float>(double{a} * b + double{c}); }

/// The neighbours of a place on an axis.
struct Neighbours {
  std::int64_t first = 0;
  std::int64_t second = 0;
  float first_weight = 1;
  float second_weight = 0;
};

std::vector<Neighbours> neighbours_of(std::int64_t in_size, std::int64_t out_size) {
  const float scale = static_cast<float>(in_size) / static_cast<float>(out_size);
  std::vector<Neighbours> all(static_cast<std::size_t>(out_size));
  for (std::int64_t i = 0; i < out_size; ++i) {
    const float place = std::max(fused(scale, static_cast<float>(i) + 0.5f, -0.5f), 0.0f);
    Neighbours& n = all[static_cast<std::size_t>(i)];
    n.first = std::min(static_cast<std::int64_t>(place), in_size - 1);
    n.second = std::min(n.first + 1, in_size - 1);
    n.second_weight = std::clamp(place - static_cast<float>(n.first), 0.0f, 1.0f);
    n.first_weight = 1.0f - n.second_weight;
  }
  return all;
}

/// One row of the result from two of the source.
void blend_rows(const std::uint8_t* top, const std::uint8_t* bottom, const Neighbours& y,
                const std::vector<Neighbours>& columns, std::uint8_t* out) {
  for (const Neighbours& x : columns) {
    const float top_left = y.first_weight * x.first_weight;
    const float top_right = y.first_weight * x.second_weight;
    const float bottom_left = y.second_weight * x.first_weight;
    const float bottom_right = y.second_weight * x.second_weight;
    for (std::int64_t c = 0; c < kRgb; ++c) {
      const std::int64_t left = x.first * kRgb + c;
      const std::int64_t right = x.second * kRgb + c;
      float sum = top_right * top[right];
      sum = fused(top_left, top[left], sum);
      sum = fused(bottom_left, bottom[left], sum);
      sum = fused(bottom_right, bottom[right], sum);
      *out++ = static_cast<std::uint8_t>(std::clamp(std::nearbyint(sum), 0.0f, 255.0f));
    }
  }
}

void check_size(const char* which, std::int64_t width_px, std::int64_t height_px,
                std::size_t num_bytes) {
  FOVEA_CHECK(width_px >= 1 && height_px >= 1, kInvalidArgument, "resize: ", which,
              " must have sides >= 1, got ", width_px, " x ", height_px);
  const auto expected = static_cast<std::size_t>(width_px * height_px * kRgb);
  FOVEA_CHECK(num_bytes == expected, kInvalidArgument, "resize: ", which, " of ", width_px, " x ",
              height_px, " pixels must have ", expected, " bytes, got ", num_bytes);
}

}  // namespace

void resize_rgb_plain(const ResizePlainArgs& args) {
  check_size("source", args.src_width_px, args.src_height_px, args.src.size());
  check_size("result", args.dst_width_px, args.dst_height_px, args.dst.size());
  const std::vector<Neighbours> columns = neighbours_of(args.src_width_px, args.dst_width_px);
  const std::int64_t row_bytes = args.src_width_px * kRgb;
  std::uint8_t* out = args.dst.data();
  for (const Neighbours& y : neighbours_of(args.src_height_px, args.dst_height_px)) {
    check_interrupt();
    blend_rows(args.src.data() + y.first * row_bytes, args.src.data() + y.second * row_bytes, y,
               columns, out);
    out += args.dst_width_px * kRgb;
  }
}

}  // namespace fovea::media
