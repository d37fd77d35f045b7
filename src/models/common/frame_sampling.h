#pragma once

#include <cstdint>
#include <vector>

namespace fovea::common {

/// linspace(first, last, count)[i], as NumPy computes it.
[[nodiscard]] double spaced(double first, double last, std::int64_t count, std::int64_t i);

/// Indices of `count` frames from `first` to `last`, evenly spaced and rounded down.
[[nodiscard]] std::vector<std::int64_t> spread_frames(std::int64_t first, std::int64_t last,
                                                      std::int64_t count);

}  // namespace fovea::common
