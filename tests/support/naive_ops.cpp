// Reference bodies of the ops: loops over the formulas of the headers.
#include "support/naive_ops.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

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

double naive_activation(ops::Activation activation, double x) {
  switch (activation) {
    case ops::Activation::kNone: return x;
    case ops::Activation::kGeluTanh:
      return x / (1.0 + std::exp(-2.0 * std::sqrt(2.0 / std::numbers::pi) *
                                 (x + 0.044715 * x * x * x)));  // 0.5 (1 + tanh u) without loss
    case ops::Activation::kGeluErf: return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
    case ops::Activation::kQuickGelu: return x / (1.0 + std::exp(-1.702 * x));
    case ops::Activation::kSilu: return x / (1.0 + std::exp(-x));
    case ops::Activation::kRelu2: return x > 0 ? x * x : 0;
  }
  return x;
}

NaiveAngles naive_rope_angles(const std::vector<std::int32_t>& positions,
                              const std::vector<float>& inv_freq) {
  NaiveAngles out;
  for (std::size_t row = 0; row < positions.size() / 4; ++row) {
    for (std::size_t j = 0; j < inv_freq.size(); ++j) {
      const std::size_t axis = j < inv_freq.size() / 2 ? 0 : 1;
      // The contract rounds the angle to f32.
      const float angle = static_cast<float>(positions[4 * row + axis]) * inv_freq[j];
      out.cos.push_back(std::cos(static_cast<double>(angle)));
      out.sin.push_back(std::sin(static_cast<double>(angle)));
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
                                    std::int64_t num_heads, std::int64_t head_dim, double scale,
                                    std::int64_t prefix) {
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
          if (j - cu_seqlens[s] >= prefix && j > i) break;
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

namespace {

/// Row in qkv of place (y, x) of the window that begins at (top, left); -1 beyond the image.
std::int64_t row_of_place(const NaiveGrid& grid, std::int64_t image, std::int64_t y,
                          std::int64_t x) {
  if (y >= grid.height || x >= grid.width) return -1;
  return (image * grid.height + y) * grid.width + x;
}

}  // namespace

std::vector<double> naive_grid_attention(const NaiveGridInputs& in, const NaiveGrid& grid,
                                         std::int64_t row) {
  const std::int64_t width = grid.num_heads * grid.head_dim;
  const std::int64_t image = row / (grid.height * grid.width);
  const std::int64_t y = row / grid.width % grid.height;
  const std::int64_t x = row % grid.width;
  const std::int64_t side_h = grid.window > 0 ? grid.window : grid.height;
  const std::int64_t side_w = grid.window > 0 ? grid.window : grid.width;
  const std::int64_t top = y / side_h * side_h;
  const std::int64_t left = x / side_w * side_w;
  const auto element = [&](std::int64_t of, std::int64_t part, std::int64_t head, std::int64_t d) {
    const std::int64_t col = part * width + head * grid.head_dim + d;
    return static_cast<double>(of < 0 ? in.pad_qkv[at(0, col, 3 * width)]
                                      : in.qkv[at(of, col, 3 * width)]);
  };
  const auto table = [&](const std::vector<float>& rows, std::int64_t entry, std::int64_t d) {
    return static_cast<double>(rows[at(entry, d, grid.head_dim)]);
  };

  std::vector<double> out;
  for (std::int64_t head = 0; head < grid.num_heads; ++head) {
    std::vector<double> weights;
    for (std::int64_t ky = top; ky < top + side_h; ++ky) {
      for (std::int64_t kx = left; kx < left + side_w; ++kx) {
        const std::int64_t key = row_of_place(grid, image, ky, kx);
        double logit = 0;
        for (std::int64_t d = 0; d < grid.head_dim; ++d) {
          logit += element(row, 0, head, d) * (grid.scale * element(key, 1, head, d) +
                                               table(in.rel_pos_h, y - ky + side_h - 1, d) +
                                               table(in.rel_pos_w, x - kx + side_w - 1, d));
        }
        weights.push_back(logit);
      }
    }
    const double max = *std::max_element(weights.begin(), weights.end());
    double sum = 0;
    for (double& weight : weights) sum += weight = std::exp(weight - max);
    for (std::int64_t d = 0; d < grid.head_dim; ++d) {
      double value = 0;
      for (std::int64_t k = 0; k < side_h * side_w; ++k) {
        const std::int64_t key = row_of_place(grid, image, top + k / side_w, left + k % side_w);
        value += weights[static_cast<std::size_t>(k)] * element(key, 2, head, d);
      }
      out.push_back(value / sum);
    }
  }
  return out;
}

std::vector<float> naive_im2col_3x3(const std::vector<float>& x, std::int64_t height,
                                    std::int64_t width, std::int64_t channels,
                                    std::int64_t stride) {
  std::vector<float> out;
  const std::int64_t images = static_cast<std::int64_t>(x.size()) / (height * width * channels);
  for (std::int64_t n = 0; n < images; ++n) {
    for (std::int64_t y = 0; y < height; y += stride) {
      for (std::int64_t col = 0; col < width; col += stride) {
        for (std::int64_t tap = 0; tap < 9; ++tap) {
          const std::int64_t from_y = y + tap / 3 - 1;
          const std::int64_t from_x = col + tap % 3 - 1;
          const bool inside = from_y >= 0 && from_y < height && from_x >= 0 && from_x < width;
          for (std::int64_t c = 0; c < channels; ++c) {
            out.push_back(inside ? x[at((n * height + from_y) * width + from_x, c, channels)]
                                 : 0.0f);
          }
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
            const std::int64_t planes = sources[4 * r + 3];
            const std::int64_t place = planes > 0 ? c * planes + x : 3 * x + c;
            const std::int64_t byte =
                sources[4 * r] + f * sources[4 * r + 2] + y * sources[4 * r + 1] + place;
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

/// (i + 0.5) * (side / n) - 0.5 in f32, for the same reason.
double centre_position(std::int32_t i, std::int32_t n, std::int64_t side) {
  const float scale = static_cast<float>(side) / static_cast<float>(n);
  volatile float product = (static_cast<float>(i) + 0.5f) * scale;  // no fused multiply-add here
  return product - 0.5f;
}

/// Keys' kernel with a = -0.75.
double cubic(double distance) {
  constexpr double kA = -0.75;
  const double d = std::abs(distance);
  if (d <= 1) return ((kA + 2) * d - (kA + 3)) * d * d + 1;
  if (d < 2) return kA * (((d - 5) * d + 8) * d - 4);
  return 0;
}

/// x and the table's entries around the places that `place_of` gives, in proportion to their
/// distance.
template <class PlaceOf>
std::vector<double> add_neighbours(const std::vector<float>& x, const std::vector<float>& table,
                                   const std::vector<std::int32_t>& positions,
                                   std::int64_t table_height, std::int64_t table_width,
                                   PlaceOf place_of) {
  std::vector<double> out(x.begin(), x.end());
  const std::int64_t rows = static_cast<std::int64_t>(positions.size()) / 4;
  const std::int64_t cols = static_cast<std::int64_t>(x.size()) / rows;
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto* const place = positions.data() + 4 * r;
    const double y = place_of(place[0], place[2], table_height);
    const double z = place_of(place[1], place[3], table_width);
    for (std::int64_t grid_y = 0; grid_y < table_height; ++grid_y) {
      for (std::int64_t grid_x = 0; grid_x < table_width; ++grid_x) {
        // The hat function of every table entry at the position: non-zero for the neighbours alone.
        const double weight = std::max(0.0, 1 - std::abs(y - static_cast<double>(grid_y))) *
                              std::max(0.0, 1 - std::abs(z - static_cast<double>(grid_x)));
        if (weight == 0) continue;
        for (std::int64_t c = 0; c < cols; ++c)
          out[at(r, c, cols)] += weight * table[at(grid_y * table_width + grid_x, c, cols)];
      }
    }
  }
  return out;
}

}  // namespace

std::vector<double> naive_add_positions(const std::vector<float>& x,
                                        const std::vector<float>& table,
                                        const std::vector<std::int32_t>& positions,
                                        std::int64_t table_height, std::int64_t table_width) {
  return add_neighbours(x, table, positions, table_height, table_width, axis_position);
}

std::vector<double> naive_add_positions_half_pixel(const std::vector<float>& x,
                                                   const std::vector<float>& table,
                                                   const std::vector<std::int32_t>& positions,
                                                   std::int64_t table_height,
                                                   std::int64_t table_width) {
  const auto within = [](std::int32_t i, std::int32_t n, std::int64_t side) {
    return std::clamp(centre_position(i, n, side), 0.0, static_cast<double>(side - 1));
  };
  return add_neighbours(x, table, positions, table_height, table_width, within);
}

std::vector<double> naive_add_positions_antialiased(const std::vector<float>& x,
                                                    const std::vector<float>& table,
                                                    const std::vector<std::int32_t>& positions,
                                                    std::int64_t table_height,
                                                    std::int64_t table_width) {
  /// The share of every entry of an axis.
  const auto shares = [](std::int32_t i, std::int32_t n, std::int64_t side) {
    const double scale = static_cast<double>(side) / n;
    std::vector<double> weights;
    for (std::int64_t k = 0; k < side; ++k) {
      const double distance = std::abs(static_cast<double>(k) + 0.5 - scale * (i + 0.5));
      weights.push_back(std::max(0.0, 1 - distance / std::max(scale, 1.0)));
    }
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (double& weight : weights) weight /= sum;
    return weights;
  };
  std::vector<double> out(x.begin(), x.end());
  const std::int64_t rows = static_cast<std::int64_t>(positions.size()) / 4;
  const std::int64_t cols = static_cast<std::int64_t>(x.size()) / rows;
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto* const p = positions.data() + 4 * r;
    const std::vector<double> down = shares(p[0], p[2], table_height);
    const std::vector<double> across = shares(p[1], p[3], table_width);
    for (std::size_t k = 0; k < down.size() * across.size(); ++k) {
      const double weight = down[k / across.size()] * across[k % across.size()];
      for (std::int64_t c = 0; c < cols; ++c)
        out[at(r, c, cols)] += weight * table[at(static_cast<std::int64_t>(k), c, cols)];
    }
  }
  return out;
}

std::vector<double> naive_add_positions_bicubic(const std::vector<float>& x,
                                                const std::vector<float>& table,
                                                const std::vector<std::int32_t>& positions,
                                                std::int64_t table_height,
                                                std::int64_t table_width) {
  std::vector<double> out(x.begin(), x.end());
  const std::int64_t rows = static_cast<std::int64_t>(positions.size()) / 4;
  const std::int64_t cols = static_cast<std::int64_t>(x.size()) / rows;
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto* const p = positions.data() + 4 * r;
    const double y = centre_position(p[0], p[2], table_height);
    const double z = centre_position(p[1], p[3], table_width);
    // A table that goes on beyond its edges with the entries there, as far as a tap can reach.
    for (std::int64_t grid_y = -3; grid_y < table_height + 3; ++grid_y) {
      for (std::int64_t grid_x = -3; grid_x < table_width + 3; ++grid_x) {
        const double weight =
            cubic(y - static_cast<double>(grid_y)) * cubic(z - static_cast<double>(grid_x));
        const std::int64_t entry =
            std::clamp<std::int64_t>(grid_y, 0, table_height - 1) * table_width +
            std::clamp<std::int64_t>(grid_x, 0, table_width - 1);
        for (std::int64_t c = 0; weight != 0 && c < cols; ++c)
          out[at(r, c, cols)] += weight * table[at(entry, c, cols)];
      }
    }
  }
  return out;
}

}  // namespace fovea::test
