#include "engine/pruning/wide_rows.h"

#include <array>

#include "core/row_dtype.h"

namespace fovea {

void read_columns(const Embedding& video, std::int64_t row, std::int64_t begin,
                  std::span<float> values) {
  const DType dtype = to_dtype(video.dtype);
  const auto at = static_cast<std::size_t>(row * video.width + begin);
  widen_to_f32(dtype, video.data.data() + at * size_of(dtype), values.data(), values.size());
}

double dot(std::span<const float> a, std::span<const float> b) {
  constexpr std::size_t kLanes = 8;
  std::array<double, kLanes> sums{};
  std::size_t at = 0;
  for (; at + kLanes <= a.size(); at += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      sums[lane] += static_cast<double>(a[at + lane]) * static_cast<double>(b[at + lane]);
    }
  }
  for (; at < a.size(); ++at) sums[0] += static_cast<double>(a[at]) * static_cast<double>(b[at]);
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace fovea
