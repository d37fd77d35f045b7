#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "serve/routes/route_caller.h"

namespace fovea::serve::test {

/// The mean of the first columns of an image's rows at length 1, as far as doubles tell.
inline std::vector<double> mean_vector(const std::vector<std::uint8_t>& image,
                                       std::int64_t columns) {
  const Embedding item = encoded(image, RowDType::kFloat32);
  std::vector<double> mean(static_cast<std::size_t>(columns));
  double square = 0;
  for (std::size_t column = 0; column < mean.size(); ++column) {
    for (std::int64_t row = 0; row < item.rows; ++row) {
      mean[column] +=
          item.at(row, static_cast<std::int64_t>(column)) / static_cast<double>(item.rows);
    }
    square += mean[column] * mean[column];
  }
  for (double& value : mean) value /= std::sqrt(square);
  return mean;
}

inline void expect_vector(const Json& numbers, const std::vector<double>& expected) {
  ASSERT_EQ(numbers.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(numbers[i].get<double>(), expected[i], 1e-5) << i;
  }
}

}  // namespace fovea::serve::test
