// Filter weights of one axis. Bytes depend on their last bits, so this file is compiled without
// contraction of multiplications and additions into FMAs, and the expressions keep the order of the
// references.
#include "media/resize/weights.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>

#include "core/check.h"

namespace fovea::media {
namespace {

constexpr int kPillowBits = 32 - 8 - 2;  // of 32: 8 for the pixel, 2 for overshoot and sign
constexpr int kMaxTorchBits = 22;

// The filters; x is the distance in units of the filter's scale.

double bilinear(double x) {
  x = std::abs(x);
  return x < 1.0 ? 1.0 - x : 0.0;
}

double bicubic(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
  if (x < 2.0) return (((x - 5.0) * x + 8.0) * x - 4.0) * a;
  return 0.0;
}

double sinc(double x) {
  if (x == 0.0) return 1.0;
  x *= std::numbers::pi;
  return std::sin(x) / x;
}

double lanczos(double x) { return -3.0 <= x && x < 3.0 ? sinc(x) * sinc(x / 3.0) : 0.0; }

struct Filter {
  double (*value)(double);
  double support;
};

Filter filter_of(ResizeFilter filter) {
  switch (filter) {
    case ResizeFilter::kBilinear: return {bilinear, 1.0};
    case ResizeFilter::kBicubic: return {bicubic, 2.0};
    case ResizeFilter::kLanczos: return {lanczos, 3.0};
  }
  FOVEA_CHECK(false, kInternal, "resize filter without a formula");
  return {};
}

std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

/// Where the filter of each output pixel lies on the input.
struct Geometry {
  double begin;
  double scale;
  double support;
  double inverse_filter_scale;

  [[nodiscard]] double center(std::int64_t i) const {
    return begin + (static_cast<double>(i) + 0.5) * scale;
  }
};

Geometry geometry_of(const Filter& filter, const AxisWeights& axis, const AxisMargins& margins) {
  const double in_size = static_cast<double>(axis.in_size) - margins.before_px - margins.after_px;
  const double scale = in_size / static_cast<double>(axis.out_size);
  const double filter_scale = std::max(scale, 1.0);
  return {margins.before_px, scale, filter.support * filter_scale, 1.0 / filter_scale};
}

/// Fills first, count, max_count and taps.
void choose_windows(const Geometry& geometry, AxisWeights& axis) {
  const auto max_count = static_cast<std::int64_t>(std::ceil(geometry.support)) * 2 + 1;
  const auto padded_size = static_cast<std::size_t>(round_up(axis.out_size, kTapGroup));
  axis.first.assign(padded_size, 0);
  axis.count.assign(padded_size, 0);
  for (std::int64_t i = 0; i < axis.out_size; ++i) {
    const double center = geometry.center(i);
    const auto low = static_cast<std::int64_t>(center - geometry.support + 0.5);
    const auto high = static_cast<std::int64_t>(center + geometry.support + 0.5);
    const std::int64_t first = std::max<std::int64_t>(low, 0);
    const std::int64_t count = std::min(std::min(high, axis.in_size) - first, max_count);
    axis.first[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(first);
    axis.count[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(count);
    axis.max_count = std::max(axis.max_count, count);
  }
  axis.taps = round_up(axis.max_count, kTapGroup);
}

/// Weights of one output pixel, which add up to 1.
void fill_weights(const Filter& filter, const Geometry& geometry, double center, std::int64_t first,
                  std::span<double> weights) {
  double sum = 0.0;
  for (std::size_t j = 0; j < weights.size(); ++j) {
    const auto position = static_cast<double>(static_cast<std::int64_t>(j) + first);
    weights[j] = filter.value((position - center + 0.5) * geometry.inverse_filter_scale);
    sum += weights[j];
  }
  if (sum == 0.0) return;
  for (double& weight : weights) weight /= sum;
}

/// Real weights in the layout of AxisWeights::weight; also chooses the windows.
std::vector<double> real_weights(const Filter& filter, const AxisMargins& margins,
                                 AxisWeights& axis) {
  const Geometry geometry = geometry_of(filter, axis, margins);
  choose_windows(geometry, axis);
  const auto taps = static_cast<std::size_t>(axis.taps);
  std::vector<double> weights(axis.first.size() * taps, 0.0);
  for (std::size_t i = 0; i < static_cast<std::size_t>(axis.out_size); ++i)
    fill_weights(filter, geometry, geometry.center(static_cast<std::int64_t>(i)), axis.first[i],
                 {weights.data() + i * taps, static_cast<std::size_t>(axis.count[i])});
  return weights;
}

/// Most bits after the point with which the largest weight still fits 16 bits, at most 22.
int torch_bits(const std::vector<double>& weights) {
  const double largest = *std::max_element(weights.begin(), weights.end());
  int bits = 0;
  while (bits < kMaxTorchBits &&
         static_cast<int>(0.5 + largest * static_cast<double>(1 << (bits + 1))) < 1 << 15)
    ++bits;
  return bits;
}

/// Rounds half away from zero.
std::int32_t to_fixed(double weight, int bits) {
  const double scaled = weight * static_cast<double>(1 << bits);
  return static_cast<std::int32_t>(weight < 0.0 ? scaled - 0.5 : scaled + 0.5);
}

void split_into_planes(AxisWeights& axis, bool fits_16_bits) {
  const std::size_t size = axis.weight.size();
  axis.planes[0].resize(size);
  if (!fits_16_bits) axis.planes[1].resize(size);
  for (std::size_t i = 0; i < size; ++i) {
    const std::int32_t weight = axis.weight[i];
    axis.planes[0][i] = static_cast<std::int16_t>(fits_16_bits ? weight : weight >> kLowPlaneBits);
    if (!fits_16_bits)
      axis.planes[1][i] = static_cast<std::int16_t>(weight & ((1 << kLowPlaneBits) - 1));
  }
}

}  // namespace

AxisWeights make_axis_weights(std::int64_t in_size, std::int64_t out_size, ResizeEngine engine,
                              ResizeFilter filter, const AxisMargins& margins) {
  AxisWeights axis;
  axis.in_size = in_size;
  axis.out_size = out_size;
  const std::vector<double> weights = real_weights(filter_of(filter), margins, axis);
  const bool fits_16_bits = engine == ResizeEngine::kTorchvision;
  axis.shift = fits_16_bits ? torch_bits(weights) : kPillowBits;
  axis.weight.resize(weights.size());
  std::transform(weights.begin(), weights.end(), axis.weight.begin(),
                 [&](double weight) { return to_fixed(weight, axis.shift); });
  split_into_planes(axis, fits_16_bits);
  return axis;
}

}  // namespace fovea::media
