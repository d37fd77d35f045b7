#pragma once

#include <cmath>
#include <cstdint>

#include "fovea/embedding.h"

namespace fovea::test {

/// What rows of another GPU, or of GEMMs of other sizes, may differ by in the relative L2 norm:
/// other kernels give some roundings of 2^-9.
inline constexpr double kMostDifference = 0.02;

/// The L2 norm of the difference, relative to that of `expected`.
inline double relative_l2(const Embedding& rows, const Embedding& expected) {
  double off = 0;
  double all = 0;
  for (std::int64_t row = 0; row < expected.rows; ++row) {
    for (std::int64_t column = 0; column < expected.width; ++column) {
      off += std::pow(rows.at(row, column) - expected.at(row, column), 2);
      all += std::pow(expected.at(row, column), 2);
    }
  }
  return std::sqrt(off / all);
}

}  // namespace fovea::test
