// Frequencies of rotary positions, in f32 as the reference computes them.
#include "models/blocks/rope.h"

#include <cmath>
#include <vector>

namespace fovea::blocks {

Tensor inverse_frequencies(WeightLoader& loader, std::int64_t head_dim, double theta) {
  const std::int64_t dim = head_dim / 2;
  std::vector<float> values;
  for (std::int64_t j = 0; j < dim / 2; ++j) {
    const float exponent = static_cast<float>(2 * j) / static_cast<float>(dim);
    values.push_back(1.0f / std::pow(static_cast<float>(theta), exponent));
  }
  return loader.constant(values, {dim / 2});
}

}  // namespace fovea::blocks
