// Position tables at another size, computed once at load.
#include "models/common/position_table.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace fovea::common {

namespace {

double cubic(double x) {
  x = std::abs(x);
  if (x < 1) return (1.5 * x - 2.5) * x * x + 1;
  if (x < 2) return ((-0.5 * x + 2.5) * x - 4) * x + 2;
  return 0;
}

/// Taps of one output position.
struct Taps {
  std::int64_t first = 0;
  std::vector<double> weights;
};

std::vector<Taps> bicubic_taps(std::int64_t from, std::int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double filter = std::max(scale, 1.0);
  std::vector<Taps> all;
  for (std::int64_t i = 0; i < to; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    Taps taps;
    taps.first = std::max<std::int64_t>(0, static_cast<std::int64_t>(centre - 2 * filter + 0.5));
    const std::int64_t end = std::min(from, static_cast<std::int64_t>(centre + 2 * filter + 0.5));
    double sum = 0;
    for (std::int64_t j = taps.first; j < end; ++j) {
      taps.weights.push_back(cubic((static_cast<double>(j) - centre + 0.5) / filter));
      sum += taps.weights.back();
    }
    for (double& weight : taps.weights) weight /= sum;
    all.push_back(std::move(taps));
  }
  return all;
}

/// Weight of a tap at a distance of up to 2, with a = -0.75.
double plain_cubic(double distance) {
  constexpr double kA = -0.75;
  const double d = std::abs(distance);
  if (d <= 1) return ((kA + 2) * d - (kA + 3)) * d * d + 1;
  return ((kA * d - 5 * kA) * d + 8 * kA) * d - 4 * kA;
}

std::vector<Taps> plain_taps(std::int64_t from, std::int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const auto inside = [&](std::int64_t place) {
    return std::clamp<std::int64_t>(place, 0, from - 1);
  };
  std::vector<Taps> all;
  for (std::int64_t i = 0; i < to; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale - 0.5;
    const auto floor = static_cast<std::int64_t>(std::floor(centre));
    Taps taps;
    taps.first = inside(floor - 1);
    taps.weights.resize(static_cast<std::size_t>(inside(floor + 2) - taps.first + 1));
    for (std::int64_t place = floor - 1; place <= floor + 2; ++place) {
      taps.weights[static_cast<std::size_t>(inside(place) - taps.first)] +=
          plain_cubic(static_cast<double>(place) - centre);
    }
    all.push_back(std::move(taps));
  }
  return all;
}

/// out[o, i, c] = sum_k w_i[k] * in[o, first_i + k, c]; in is [outer, from, inner].
std::vector<float> apply(const std::vector<Taps>& taps, std::span<const float> in,
                         std::int64_t outer, std::int64_t from, std::int64_t inner) {
  const auto to = static_cast<std::int64_t>(taps.size());
  std::vector<float> out(static_cast<std::size_t>(outer * to * inner));
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t i = 0; i < to; ++i) {
      const Taps& t = taps[static_cast<std::size_t>(i)];
      for (std::int64_t c = 0; c < inner; ++c) {
        double sum = 0;
        for (std::size_t k = 0; k < t.weights.size(); ++k) {
          const std::int64_t row = o * from + t.first + static_cast<std::int64_t>(k);
          sum += t.weights[k] * static_cast<double>(in[static_cast<std::size_t>(row * inner + c)]);
        }
        out[static_cast<std::size_t>((o * to + i) * inner + c)] = static_cast<float>(sum);
      }
    }
  }
  return out;
}

}  // namespace

std::vector<float> resize_position_table(std::span<const float> table, std::int64_t from,
                                         std::int64_t to, std::int64_t cols, BicubicTable filter) {
  FOVEA_CHECK(static_cast<std::int64_t>(table.size()) == from * from * cols, kInternal,
              "position table has ", table.size(), " values, expected ", from, "x", from, "x",
              cols);
  if (from == to) return {table.begin(), table.end()};
  const std::vector<Taps> taps =
      filter == BicubicTable::kPlain ? plain_taps(from, to) : bicubic_taps(from, to);
  const std::vector<float> wide = apply(taps, table, from, from, cols);  // [from, to, cols]
  return apply(taps, wide, 1, from, to * cols);
}

std::vector<float> resize_class_table(std::span<const float> table, std::int64_t from,
                                      std::int64_t to, std::int64_t cols, BicubicTable filter) {
  const auto row = static_cast<std::size_t>(cols);
  std::vector<float> result(table.begin(), table.begin() + cols);
  const std::vector<float> grid = resize_position_table(table.subspan(row), from, to, cols, filter);
  result.insert(result.end(), grid.begin(), grid.end());
  return result;
}

std::vector<float> resize_relative_table(std::span<const float> table, std::int64_t from,
                                         std::int64_t to, std::int64_t cols) {
  FOVEA_CHECK(static_cast<std::int64_t>(table.size()) == from * cols, kInternal,
              "relative table has ", table.size(), " values, expected ", from, "x", cols);
  if (from == to) return {table.begin(), table.end()};
  std::vector<Taps> taps;
  for (std::int64_t i = 0; i < to; ++i) {
    const double position = std::max(
        (static_cast<double>(i) + 0.5) * static_cast<double>(from) / static_cast<double>(to) - 0.5,
        0.0);
    const auto first = static_cast<std::int64_t>(position);
    const double part = position - static_cast<double>(first);
    if (first + 1 < from) {
      taps.push_back({first, {1 - part, part}});
    } else {
      taps.push_back({from - 1, {1.0}});
    }
  }
  return apply(taps, table, 1, from, cols);
}

}  // namespace fovea::common
