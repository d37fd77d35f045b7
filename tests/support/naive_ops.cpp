// Reference bodies of the ops: loops over the formulas of the headers.
#include "support/naive_ops.h"

#include <algorithm>
#include <cmath>

namespace fovea::test {

namespace {

std::size_t at(std::int64_t row, std::int64_t col, std::int64_t cols) {
  return static_cast<std::size_t>(row * cols + col);
}

}  // namespace

std::vector<double> naive_layer_norm(const std::vector<float>& x, Grid shape,
                                     const std::vector<float>& weight,
                                     const std::vector<float>& bias, double epsilon) {
  std::vector<double> out(x.size());
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    double mean = 0;
    for (std::int64_t c = 0; c < shape.cols; ++c) mean += x[at(r, c, shape.cols)];
    mean /= static_cast<double>(shape.cols);
    double variance = 0;
    for (std::int64_t c = 0; c < shape.cols; ++c)
      variance += std::pow(x[at(r, c, shape.cols)] - mean, 2);
    variance /= static_cast<double>(shape.cols);
    for (std::int64_t c = 0; c < shape.cols; ++c) {
      const std::size_t i = at(r, c, shape.cols);
      const auto col = static_cast<std::size_t>(c);
      out[i] = (x[i] - mean) / std::sqrt(variance + epsilon) * weight[col] + bias[col];
    }
  }
  return out;
}

std::vector<double> naive_rms_norm(const std::vector<float>& x, Grid shape,
                                   const std::vector<float>& weight, double epsilon) {
  std::vector<double> out(x.size());
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    double square = 0;
    for (std::int64_t c = 0; c < shape.cols; ++c) square += std::pow(x[at(r, c, shape.cols)], 2);
    square /= static_cast<double>(shape.cols);
    for (std::int64_t c = 0; c < shape.cols; ++c) {
      const std::size_t i = at(r, c, shape.cols);
      out[i] = x[i] / std::sqrt(square + epsilon) * weight[static_cast<std::size_t>(c)];
    }
  }
  return out;
}

NaiveAngles naive_rope_angles(const std::vector<std::int32_t>& positions,
                              const std::vector<float>& inv_freq) {
  NaiveAngles out;
  for (std::size_t row = 0; row < positions.size() / 4; ++row) {
    for (std::size_t axis = 0; axis < 2; ++axis) {
      for (const float frequency : inv_freq) {
        // The contract rounds the angle to f32.
        const float angle = static_cast<float>(positions[4 * row + axis]) * frequency;
        out.cos.push_back(std::cos(static_cast<double>(angle)));
        out.sin.push_back(std::sin(static_cast<double>(angle)));
      }
    }
  }
  return out;
}

std::vector<double> naive_rope(const std::vector<float>& qkv, const std::vector<float>& cos,
                               const std::vector<float>& sin, std::int64_t num_heads,
                               std::int64_t head_dim) {
  std::vector<double> out(qkv.begin(), qkv.end());
  const std::int64_t width = 3 * num_heads * head_dim;
  const std::int64_t half = head_dim / 2;
  const std::int64_t rows = static_cast<std::int64_t>(qkv.size()) / width;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t head = 0; head < 2 * num_heads; ++head) {  // q, then k
      for (std::int64_t j = 0; j < half; ++j) {
        const std::size_t low = at(r, head * head_dim + j, width);
        const std::size_t high = low + static_cast<std::size_t>(half);
        const double c = cos[at(r, j, half)];
        const double s = sin[at(r, j, half)];
        out[low] = qkv[low] * c - qkv[high] * s;
        out[high] = qkv[high] * c + qkv[low] * s;
      }
    }
  }
  return out;
}

std::vector<double> naive_attention(const std::vector<float>& qkv,
                                    const std::vector<std::int32_t>& cu_seqlens,
                                    std::int64_t num_heads, std::int64_t head_dim, double scale) {
  const std::int64_t width = num_heads * head_dim;
  std::vector<double> out(qkv.size() / 3, 0.0);
  const auto element = [&](std::int64_t row, std::int64_t part, std::int64_t head, std::int64_t d) {
    return static_cast<double>(qkv[at(row, part * width + head * head_dim + d, 3 * width)]);
  };
  for (std::size_t s = 0; s + 1 < cu_seqlens.size(); ++s) {
    for (std::int64_t i = cu_seqlens[s]; i < cu_seqlens[s + 1]; ++i) {
      for (std::int64_t head = 0; head < num_heads; ++head) {
        std::vector<double> weights;
        for (std::int64_t j = cu_seqlens[s]; j < cu_seqlens[s + 1]; ++j) {
          double score = 0;
          for (std::int64_t d = 0; d < head_dim; ++d)
            score += element(i, 0, head, d) * element(j, 1, head, d);
          weights.push_back(scale * score);
        }
        const double max = *std::max_element(weights.begin(), weights.end());
        double sum = 0;
        for (double& weight : weights) sum += weight = std::exp(weight - max);
        for (std::int64_t d = 0; d < head_dim; ++d) {
          double value = 0;
          for (std::size_t j = 0; j < weights.size(); ++j)
            value += weights[j] * element(cu_seqlens[s] + static_cast<std::int64_t>(j), 2, head, d);
          out[at(i, head * head_dim + d, width)] = value / sum;
        }
      }
    }
  }
  return out;
}

std::vector<float> naive_patchify(const std::vector<std::uint8_t>& pixels,
                                  const std::vector<std::int32_t>& sources,
                                  const std::vector<float>& table, std::int64_t patch_size,
                                  std::int64_t temporal_patch_size) {
  std::vector<float> out;
  for (std::size_t r = 0; r < sources.size() / 4; ++r) {
    for (std::int64_t c = 0; c < 3; ++c) {
      for (std::int64_t f = 0; f < temporal_patch_size; ++f) {
        for (std::int64_t y = 0; y < patch_size; ++y) {
          for (std::int64_t x = 0; x < patch_size; ++x) {
            const std::int64_t byte =
                sources[4 * r] + f * sources[4 * r + 2] + y * sources[4 * r + 1] + 3 * x + c;
            out.push_back(table[at(c, pixels[static_cast<std::size_t>(byte)], 256)]);
          }
        }
      }
    }
  }
  return out;
}

namespace {

/// linspace(0, side - 1, n)[i] in f32: the position itself is part of the contract, because another
/// rounding can move it across a grid point.
double axis_position(std::int32_t i, std::int32_t n, std::int64_t side) {
  if (n == 1) return 0;
  const float step = static_cast<float>(side - 1) / static_cast<float>(n - 1);
  volatile float product =  // no fused multiply-add here
      i < n / 2 ? static_cast<float>(i) * step : static_cast<float>(n - 1 - i) * step;
  return i < n / 2 ? product : static_cast<float>(side - 1) - product;
}

}  // namespace

std::vector<double> naive_add_positions(const std::vector<float>& x,
                                        const std::vector<float>& table,
                                        const std::vector<std::int32_t>& positions,
                                        std::int64_t side) {
  std::vector<double> out(x.begin(), x.end());
  const std::int64_t rows = static_cast<std::int64_t>(positions.size()) / 4;
  const std::int64_t cols = static_cast<std::int64_t>(x.size()) / rows;
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto* const place = positions.data() + 4 * r;
    const double y = axis_position(place[0], place[2], side);
    const double z = axis_position(place[1], place[3], side);
    for (std::int64_t grid_y = 0; grid_y < side; ++grid_y) {
      for (std::int64_t grid_x = 0; grid_x < side; ++grid_x) {
        // The hat function of every table entry at the position: non-zero for the neighbours alone.
        const double weight = std::max(0.0, 1 - std::abs(y - static_cast<double>(grid_y))) *
                              std::max(0.0, 1 - std::abs(z - static_cast<double>(grid_x)));
        if (weight == 0) continue;
        for (std::int64_t c = 0; c < cols; ++c)
          out[at(r, c, cols)] += weight * table[at(grid_y * side + grid_x, c, cols)];
      }
    }
  }
  return out;
}

}  // namespace fovea::test
