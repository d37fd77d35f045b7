#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <ostream>
#include <random>
#include <utility>
#include <vector>

#include "fovea/tower/ops/grid.h"
#include "support/naive_ops.h"
#include "support/op_fixture.h"

namespace fovea::test {

/// Sizes of a grid attention op; the scale is that of the head dim unless a test says otherwise.
struct GridSizes {
  std::int64_t images;
  std::int64_t height;
  std::int64_t width;
  std::int64_t window;
  std::int64_t heads;
  std::int64_t dim;

  [[nodiscard]] std::int64_t channels() const { return heads * dim; }
  [[nodiscard]] std::int64_t tokens() const { return height * width; }
  [[nodiscard]] std::int64_t rows() const { return images * tokens(); }
  [[nodiscard]] std::int64_t side_h() const { return window > 0 ? window : height; }
  [[nodiscard]] std::int64_t side_w() const { return window > 0 ? window : width; }
  [[nodiscard]] float scale() const { return 1.0f / std::sqrt(static_cast<float>(dim)); }
};

inline std::ostream& operator<<(std::ostream& out, const GridSizes& s) {
  return out << s.images << " images of " << s.height << "x" << s.width << ", window " << s.window
             << ", " << s.heads << " heads of " << s.dim;
}

/// The part of a matrix that belongs to images [first, last).
[[nodiscard]] inline std::vector<float> image_rows(const std::vector<float>& all,
                                                   const GridSizes& s, std::int64_t columns,
                                                   std::int64_t first, std::int64_t last) {
  const std::int64_t image = s.tokens() * columns;
  return {all.begin() + first * image, all.begin() + last * image};
}

/// The tensors of one op on a device; `out` is poisoned.
struct GridTensors {
  GridTensors(OpFixture& on, const GridSizes& s, const NaiveGridInputs& in)
      : sizes(s),
        qkv(on.activations({s.rows(), 3 * s.channels()}, in.qkv)),
        pad_qkv(on.floats({3 * s.channels()}, in.pad_qkv)),
        rel_pos_h(on.floats({2 * s.side_h() - 1, s.dim}, in.rel_pos_h)),
        rel_pos_w(on.floats({2 * s.side_w() - 1, s.dim}, in.rel_pos_w)),
        out(on.poisoned({s.rows(), s.channels()})) {}

  [[nodiscard]] ops::GridAttentionArgs args(float scale, LiveRows images = {}) const {
    return {.qkv = qkv.view(),
            .pad_qkv = pad_qkv.view(),
            .rel_pos_h = rel_pos_h.view(),
            .rel_pos_w = rel_pos_w.view(),
            .height = sizes.height,
            .width = sizes.width,
            .window = sizes.window,
            .num_heads = sizes.heads,
            .head_dim = sizes.dim,
            .scale = scale,
            .images = images,
            .out = out.view()};
  }

  GridSizes sizes;
  Tensor qkv;
  Tensor pad_qkv;
  Tensor rel_pos_h;
  Tensor rel_pos_w;
  Tensor out;
};

/// Runs grid attention on every backend and compares with the definition in double precision.
class GridAttentionTest : public ::testing::TestWithParam<OpCase> {
 protected:
  OpFixture f{GetParam()};

  /// Normal numbers that the activation dtype has; relative positions add as much to a score as
  /// keys do.
  NaiveGridInputs random_inputs(std::mt19937_64& generator, const GridSizes& s) {
    const auto values = [&](std::int64_t count, float factor) {
      std::vector<float> all = normal_values(generator, count);
      for (float& value : all) value *= factor;
      return f.rounded(std::move(all));
    };
    return {.qkv = values(s.rows() * 3 * s.channels(), 1.0f),
            .pad_qkv = values(3 * s.channels(), 1.0f),
            .rel_pos_h = values((2 * s.side_h() - 1) * s.dim, s.scale()),
            .rel_pos_w = values((2 * s.side_w() - 1) * s.dim, s.scale())};
  }

  /// Runs the op eagerly and replayed; returns all rows of out.
  static std::vector<float> attend(OpFixture& on, const GridSizes& s, const NaiveGridInputs& in,
                                   float scale) {
    const GridTensors tensors(on, s, in);
    return on.run(tensors.out,
                  [&](ExecContext& ctx) { ops::grid_attention(ctx, tensors.args(scale)); });
  }
  std::vector<float> attend(const GridSizes& s, const NaiveGridInputs& in) {
    return attend(f, s, in, s.scale());
  }

  /// Compares every step-th row, and the last one, with double precision.
  void expect_naive(const GridSizes& s, const NaiveGridInputs& in, const std::vector<float>& got,
                    std::int64_t step = 1) {
    const NaiveGrid grid{s.height, s.width, s.window, s.heads, s.dim, s.scale()};
    const auto compare = [&](std::int64_t row) {
      SCOPED_TRACE(::testing::Message() << "row " << row);
      f.expect_close({got.begin() + row * s.channels(), got.begin() + (row + 1) * s.channels()},
                     naive_grid_attention(in, grid, row), OpClass::kAttention);
    };
    for (std::int64_t row = 0; row < s.rows() && !HasFatalFailure(); row += step) compare(row);
    compare(s.rows() - 1);
  }
  void expect_naive(const GridSizes& s, std::uint64_t seed, std::int64_t step = 1) {
    SCOPED_TRACE(::testing::Message() << s);
    std::mt19937_64 generator(seed);
    const NaiveGridInputs in = random_inputs(generator, s);
    expect_naive(s, in, attend(s, in), step);
  }
};

}  // namespace fovea::test
