#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "fovea/embedding.h"

namespace fovea {

/// Columns [begin, begin + values.size()) of a row, as f32.
void read_columns(const Embedding& video, std::int64_t row, std::int64_t begin,
                  std::span<float> values);

/// In several sums side by side, which the compiler makes one vector of.
/// @param b as long as `a`.
[[nodiscard]] double dot(std::span<const float> a, std::span<const float> b);

/// Indices of `values` by `compare` of their values, of equal values the first first.
template <class Values, class Compare>
[[nodiscard]] std::vector<std::int64_t> sorted_indices(const Values& values, Compare compare) {
  std::vector<std::int64_t> order(values.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return compare(values[static_cast<std::size_t>(a)], values[static_cast<std::size_t>(b)]);
  });
  return order;
}

}  // namespace fovea
