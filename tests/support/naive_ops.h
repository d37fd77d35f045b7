#pragma once

#include <cstdint>
#include <vector>

#include "fovea/tower/ops/attention.h"
#include "fovea/tower/ops/linear.h"

namespace fovea::test {

/// The ops as their headers define them, in double precision and without any cleverness. Arguments
/// are those of the ops; matrices are row-major.

struct Grid {
  std::int64_t rows;
  std::int64_t cols;
};

[[nodiscard]] std::vector<double> naive_layer_norm(const std::vector<float>& x, Grid shape,
                                                   const std::vector<float>& weight,
                                                   const std::vector<float>& bias, double epsilon);
[[nodiscard]] std::vector<double> naive_rms_norm(const std::vector<float>& x, Grid shape,
                                                 const std::vector<float>& weight, double epsilon);

[[nodiscard]] double naive_activation(ops::Activation activation, double x);

/// cos, then sin: [rows, inv_freq.size()] each. `positions` is [rows, 4].
struct NaiveAngles {
  std::vector<double> cos;
  std::vector<double> sin;
};
[[nodiscard]] NaiveAngles naive_rope_angles(const std::vector<std::int32_t>& positions,
                                            const std::vector<float>& inv_freq);
[[nodiscard]] std::vector<double> naive_rope(const std::vector<float>& qkv,
                                             const std::vector<float>& cos,
                                             const std::vector<float>& sin, std::int64_t num_heads,
                                             std::int64_t head_dim);

/// Rows that no sequence covers are 0. @param prefix as ops::Sequences::prefix_rows.
[[nodiscard]] std::vector<double> naive_attention(const std::vector<float>& qkv,
                                                  const std::vector<std::int32_t>& cu_seqlens,
                                                  std::int64_t num_heads, std::int64_t head_dim,
                                                  double scale,
                                                  std::int64_t prefix = ops::kAllRows);

/// A grid attention op: sizes as in ops::GridAttentionArgs.
struct NaiveGrid {
  std::int64_t height;
  std::int64_t width;
  std::int64_t window;  ///< 0: the whole image
  std::int64_t num_heads;
  std::int64_t head_dim;
  double scale;
};
struct NaiveGridInputs {
  std::vector<float> qkv;
  std::vector<float> pad_qkv;
  std::vector<float> rel_pos_h;
  std::vector<float> rel_pos_w;
};
/// Row `row` of the output of ops::grid_attention, all heads.
[[nodiscard]] std::vector<double> naive_grid_attention(const NaiveGridInputs& in,
                                                       const NaiveGrid& grid, std::int64_t row);
/// Exact: a copy of elements of x and zeros. [images * out_h * out_w, 9 * channels]
[[nodiscard]] std::vector<float> naive_im2col_3x3(const std::vector<float>& x, std::int64_t height,
                                                  std::int64_t width, std::int64_t channels,
                                                  std::int64_t stride);

/// Exact: a copy of table entries.
[[nodiscard]] std::vector<float> naive_patchify(const std::vector<std::uint8_t>& pixels,
                                                const std::vector<std::int32_t>& sources,
                                                const std::vector<float>& table,
                                                std::int64_t patch_size,
                                                std::int64_t temporal_patch_size);
[[nodiscard]] std::vector<double> naive_add_positions(const std::vector<float>& x,
                                                      const std::vector<float>& table,
                                                      const std::vector<std::int32_t>& positions,
                                                      std::int64_t table_height,
                                                      std::int64_t table_width);
[[nodiscard]] std::vector<double> naive_add_positions_half_pixel(
    const std::vector<float>& x, const std::vector<float>& table,
    const std::vector<std::int32_t>& positions, std::int64_t table_height,
    std::int64_t table_width);
[[nodiscard]] std::vector<double> naive_add_positions_antialiased(
    const std::vector<float>& x, const std::vector<float>& table,
    const std::vector<std::int32_t>& positions, std::int64_t table_height,
    std::int64_t table_width);
[[nodiscard]] std::vector<double> naive_add_positions_bicubic(
    const std::vector<float>& x, const std::vector<float>& table,
    const std::vector<std::int32_t>& positions, std::int64_t table_height,
    std::int64_t table_width);

}  // namespace fovea::test
