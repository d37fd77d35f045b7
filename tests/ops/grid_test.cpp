// Attention with relative positions and convolution rows on every backend: known values, double
// precision, windows that overhang, live counts, replay.
#include "ops/grid.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/expect_error.h"
#include "support/naive_ops.h"
#include "support/op_fixture.h"
#include "support/property.h"

namespace fovea::test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Sizes of an op; the scale is that of the head dim unless a test says otherwise.
struct Sizes {
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

std::ostream& operator<<(std::ostream& out, const Sizes& s) {
  return out << s.images << " images of " << s.height << "x" << s.width << ", window " << s.window
             << ", " << s.heads << " heads of " << s.dim;
}

/// The part of a matrix that belongs to images [first, last).
std::vector<float> image_rows(const std::vector<float>& all, const Sizes& s, std::int64_t columns,
                              std::int64_t first, std::int64_t last) {
  const std::int64_t image = s.tokens() * columns;
  return {all.begin() + first * image, all.begin() + last * image};
}

class GridAttentionTest : public ::testing::TestWithParam<OpCase> {
 protected:
  OpFixture f{GetParam()};

  /// Normal numbers that the activation dtype has; relative positions add as much to a score as
  /// keys do.
  NaiveGridInputs random_inputs(std::mt19937_64& generator, const Sizes& s) {
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
  std::vector<float> attend(OpFixture& on, const Sizes& s, const NaiveGridInputs& in, float scale) {
    const Tensor qkv = on.activations({s.rows(), 3 * s.channels()}, in.qkv);
    const Tensor pad = on.floats({3 * s.channels()}, in.pad_qkv);
    const Tensor rel_h = on.floats({2 * s.side_h() - 1, s.dim}, in.rel_pos_h);
    const Tensor rel_w = on.floats({2 * s.side_w() - 1, s.dim}, in.rel_pos_w);
    const Tensor out = on.poisoned({s.rows(), s.channels()});
    return on.run(out, [&](ExecContext& ctx) {
      ops::grid_attention(ctx, {.qkv = qkv.view(),
                                .pad_qkv = pad.view(),
                                .rel_pos_h = rel_h.view(),
                                .rel_pos_w = rel_w.view(),
                                .height = s.height,
                                .width = s.width,
                                .window = s.window,
                                .num_heads = s.heads,
                                .head_dim = s.dim,
                                .scale = scale,
                                .out = out.view()});
    });
  }
  std::vector<float> attend(const Sizes& s, const NaiveGridInputs& in) {
    return attend(f, s, in, s.scale());
  }

  /// Compares every step-th row, and the last one, with double precision.
  void expect_naive(const Sizes& s, const NaiveGridInputs& in, const std::vector<float>& got,
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
  void expect_naive(const Sizes& s, std::uint64_t seed, std::int64_t step = 1) {
    SCOPED_TRACE(::testing::Message() << s);
    std::mt19937_64 generator(seed);
    const NaiveGridInputs in = random_inputs(generator, s);
    expect_naive(s, in, attend(s, in), step);
  }
};

INSTANTIATE_TEST_SUITE_P(Devices, GridAttentionTest, ::testing::ValuesIn(op_cases()), op_case_name);

/// Rows of pairs as rows of 8 components, zeros behind.
std::vector<float> rows_of_8(const std::vector<std::array<float, 2>>& pairs) {
  std::vector<float> rows;
  for (const auto& [first, second] : pairs) {
    rows.insert(rows.end(), {first, second, 0, 0, 0, 0, 0, 0});
  }
  return rows;
}

TEST_P(GridAttentionTest, MatchesTheExampleOfTheSpecification) {
  // DeepSeek-OCR specification, example E7: a grid of 2 x 3, one head of 2 components.
  const std::vector<std::array<float, 2>> q{{-1, -0.5f},    {0, -0.25f},  {1, 0},
                                            {-0.5f, 0.25f}, {0.5f, 0.5f}, {1.5f, 0.75f}};
  std::vector<std::array<float, 2>> rows;
  for (std::size_t i = 0; i < 6; ++i) {
    const auto n = static_cast<float>(i);
    rows.push_back(q[i]);
    rows.push_back({0.1f * n, 0.3f - 0.1f * n});
    rows.push_back({n, n * n / 10});
  }
  const std::vector<float> got = attend(
      f, {1, 2, 3, 0, 1, 8},
      {.qkv = rows_of_8(rows),
       .pad_qkv = std::vector<float>(24, kNan),
       .rel_pos_h = rows_of_8({{0.2f, -0.1f}, {0, 0.3f}, {-0.4f, 0.5f}}),
       .rel_pos_w = rows_of_8({{0.1f, 0.2f}, {0, -0.2f}, {0.3f, 0.3f}, {-0.1f, 0.4f}, {0.5f, 0}})},
      1 / std::sqrt(2.0f));
  const std::vector<std::array<double, 2>> want{{2.471274, 0.891592}, {2.677265, 1.007931},
                                                {2.782327, 1.066532}, {2.186987, 0.761069},
                                                {2.499716, 0.909221}, {2.955294, 1.156548}};
  // The inputs are not numbers of the narrow types: a score is off by some of their roundings.
  const double limit = f.dtype() == DType::kF32 ? 2e-6 : 0.02;
  for (std::size_t row = 0; row < want.size(); ++row) {
    EXPECT_NEAR(got[8 * row], want[row][0], limit) << "row " << row;
    EXPECT_NEAR(got[8 * row + 1], want[row][1], limit) << "row " << row;
    EXPECT_EQ(got[8 * row + 2], 0.0f);
  }
}

TEST_P(GridAttentionTest, OneTokenReturnsItsValue) {
  std::mt19937_64 generator(1);
  const Sizes s{1, 1, 1, 0, 3, 16};
  const NaiveGridInputs in = random_inputs(generator, s);
  const std::vector<double> value(in.qkv.begin() + 2 * s.channels(), in.qkv.end());
  f.expect_close(attend(s, in), value, OpClass::kPointwise);
}

TEST_P(GridAttentionTest, OverhangingTokensTakePart) {
  // One token in a window of 2 x 2, all scores 0: the mean of its value and three padded ones.
  const auto head = [](float q, float k, float v) {
    std::vector<float> row(24, 0.0f);
    row[0] = q;
    row[8] = k;
    row[16] = v;
    return row;
  };
  const std::vector<float> none(24, 0.0f);
  EXPECT_EQ(attend(f, {1, 1, 1, 2, 1, 8}, {head(0, 5, 8), head(7, 3, 4), none, none}, 1.0f)[0],
            5.0f);
  // A query of 1 against keys ln 3 and three times 0: weights 3 : 1 : 1 : 1.
  const std::vector<float> got =
      attend(f, {1, 1, 1, 2, 1, 8}, {head(1, std::log(3.0f), 8), head(7, 0, 4), none, none}, 1.0f);
  EXPECT_NEAR(got[0], 6.0, f.dtype() == DType::kF32 ? 1e-6 : 0.02);
}

TEST_P(GridAttentionTest, BiasReadsTheDistanceOfRowsAndColumns) {
  // Values count the keys of a 2 x 2 grid; queries are the unit vector of one component, keys zero.
  // Relative positions are huge for one distance alone, which then chooses the key.
  std::vector<float> qkv;
  for (int key = 0; key < 4; ++key) {
    qkv.insert(qkv.end(), {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
    qkv.insert(qkv.end(), {static_cast<float>(key), 0, 0, 0, 0, 0, 0, 0});
  }
  const auto table = [](std::size_t entry) {
    std::vector<float> rows(24, 0.0f);
    rows[8 * entry] = 256;
    return rows;
  };
  const std::vector<float> pad(24, kNan);
  const auto chosen = [&](std::size_t by_row, std::size_t by_col) {
    const std::vector<float> out =
        attend(f, {1, 2, 2, 0, 1, 8}, {qkv, pad, table(by_row), table(by_col)}, 1.0f);
    return std::vector<float>{out[0], out[8], out[16], out[24]};
  };
  // Entry 0 belongs to the key one further, entry 1 to the same place, entry 2 to the one before.
  // Where there is no such row or column, all weigh the same.
  EXPECT_EQ(chosen(0, 0), (std::vector<float>{3, 2.5f, 2, 1.5f}));
  EXPECT_EQ(chosen(2, 1), (std::vector<float>{1, 2, 0, 1}));
  EXPECT_EQ(chosen(1, 2), (std::vector<float>{0.5f, 0, 2.5f, 2}));
}

TEST_P(GridAttentionTest, MatchesDoublePrecisionForEveryHeadDim) {
  std::uint64_t seed = 10;
  for (const std::int64_t dim : {8, 16, 24, 40, 64, 72, 80, 96, 128}) {
    expect_naive({1, 5, 6, 3, 2, dim}, seed++);
    expect_naive({1, 5, 6, 0, 2, dim}, seed++);
  }
}

TEST_P(GridAttentionTest, MatchesDoublePrecisionForSmallGrids) {
  std::uint64_t seed = 40;
  for (const auto& [height, width] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 1}, {1, 9}, {9, 1}, {4, 5}, {7, 3}}) {
    for (const std::int64_t window : {0, 1, 2, 3, 5, 10}) {
      expect_naive({2, height, width, window, 2, 16}, seed++);
    }
  }
}

TEST_P(GridAttentionTest, MatchesDoublePrecisionForTheWindowsOfSam) {
  expect_naive({1, 14, 14, 14, 1, 64}, 70);
  expect_naive({1, 40, 40, 14, 1, 64}, 71, 7);   // overhangs by 2
  expect_naive({1, 64, 64, 14, 2, 64}, 72, 31);  // by 6
}

TEST_P(GridAttentionTest, MatchesDoublePrecisionForTheGlobalBlocksOfSam) {
  expect_naive({1, 40, 40, 0, 2, 64}, 73, 61);
  expect_naive({1, 64, 64, 0, 1, 64}, 74, 255);
}

TEST_P(GridAttentionTest, MatchesDoublePrecisionForTheWidthsOfViews) {
  // Some backends have bodies of their own for these: few and many tiles of queries, whole ones and
  // not, more of them than a GPU has multiprocessors.
  std::uint64_t seed = 75;
  for (const Sizes& s :
       {Sizes{2, 2, 32, 0, 2, 64}, Sizes{3, 6, 32, 0, 1, 64}, Sizes{2, 4, 40, 0, 3, 64},
        Sizes{1, 1, 64, 0, 1, 64}, Sizes{3, 3, 64, 0, 2, 64}, Sizes{6, 8, 64, 0, 8, 64},
        Sizes{2, 5, 80, 0, 2, 64}, Sizes{1, 3, 40, 0, 2, 64}}) {
    expect_naive(s, seed++, 29);
  }
}

TEST_P(GridAttentionTest, MatchesDoublePrecisionForGridsThatAreNotSquare) {
  // Around the widths of vectors and of blocks of queries and keys.
  std::uint64_t seed = 80;
  for (const auto& [height, width] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{3, 43}, {33, 4}, {16, 17}, {20, 24}}) {
    expect_naive({2, height, width, 0, 1, 24}, seed++, 5);
    expect_naive({2, height, width, 16, 1, 24}, seed++, 5);
  }
}

TEST_P(GridAttentionTest, ScaleLeavesTheBiasAlone) {
  std::mt19937_64 generator(90);
  const Sizes s{1, 3, 4, 0, 1, 8};
  const NaiveGridInputs in = random_inputs(generator, s);
  for (const float scale : {0.0f, -0.5f, 2.0f}) {
    const std::vector<float> got = attend(f, s, in, scale);
    const NaiveGrid grid{s.height, s.width, s.window, s.heads, s.dim, scale};
    for (std::int64_t row = 0; row < s.rows(); ++row) {
      f.expect_close({got.begin() + row * s.dim, got.begin() + (row + 1) * s.dim},
                     naive_grid_attention(in, grid, row), OpClass::kAttention);
    }
  }
}

TEST_P(GridAttentionTest, HugeScoresChooseOneKey) {
  // Query 1 against keys -1000, 0 and 1000 in a row; e^1000 would overflow.
  std::vector<float> qkv;
  for (const float key : {-1000.0f, 0.0f, 1000.0f}) {
    qkv.insert(qkv.end(), {1, 0, 0, 0, 0, 0, 0, 0, key, 0, 0, 0, 0, 0, 0, 0});
    qkv.insert(qkv.end(), {key, 0, 0, 0, 0, 0, 0, 0});
  }
  const std::vector<float> got = attend(f, {1, 1, 3, 0, 1, 8},
                                        {qkv, std::vector<float>(24, kNan),
                                         std::vector<float>(8, 0.0f), std::vector<float>(40, 0.0f)},
                                        1.0f);
  for (const std::size_t row : {0u, 8u, 16u}) EXPECT_EQ(got[row], f.rounded({1000.0f})[0]);
}

TEST_P(GridAttentionTest, WindowsHaveTheSameBitsAsImagesOfTheirSize) {
  if (!f.exact_rows()) GTEST_SKIP() << "not promised by this backend";
  std::mt19937_64 generator(100);
  const Sizes square{1, 4, 4, 0, 2, 16};
  const NaiveGridInputs left = random_inputs(generator, square);
  NaiveGridInputs right = left;
  right.qkv = random_inputs(generator, square).qkv;
  /// Two pictures side by side.
  const auto join = [&](const std::vector<float>& a, const std::vector<float>& b,
                        std::int64_t columns) {
    std::vector<float> joined;
    const std::int64_t row = square.width * columns;
    for (std::int64_t y = 0; y < square.height; ++y) {
      for (const std::vector<float>* part : {&a, &b}) {
        joined.insert(joined.end(), part->begin() + y * row, part->begin() + (y + 1) * row);
      }
    }
    return joined;
  };
  NaiveGridInputs both = left;
  both.qkv = join(left.qkv, right.qkv, 3 * square.channels());
  expect_same_bits(attend({1, 4, 8, 4, 2, 16}, both),
                   join(attend(square, left), attend(square, right), square.channels()));
}

TEST_P(GridAttentionTest, AnImageHasTheSameBitsAloneAndAmongOthers) {
  if (!f.exact_rows()) GTEST_SKIP() << "not promised by this backend";
  for_all(6, [&](std::mt19937_64& generator) {
    const Sizes s{4,
                  uniform(generator, 1, 24),
                  uniform(generator, 1, 24),
                  uniform(generator, 0, 1) * uniform(generator, 1, 14),
                  uniform(generator, 1, 3),
                  8 * uniform(generator, 1, 10)};
    SCOPED_TRACE(::testing::Message() << s);
    const NaiveGridInputs in = random_inputs(generator, s);
    const std::vector<float> together = attend(s, in);
    Sizes one = s;
    one.images = 1;
    for (std::int64_t image = 0; image < s.images; ++image) {
      NaiveGridInputs alone = in;
      alone.qkv = image_rows(in.qkv, s, 3 * s.channels(), image, image + 1);
      expect_same_bits(attend(one, alone), image_rows(together, s, s.channels(), image, image + 1));
    }
  });
}

TEST_P(GridAttentionTest, TheNumberOfThreadsDoesNotChangeBits) {
  if (!f.exact_rows()) GTEST_SKIP() << "not promised by this backend";
  std::mt19937_64 generator(110);
  for (const std::int64_t window : {0, 6}) {
    const Sizes s{2, 20, 23, window, 3, 24};
    const NaiveGridInputs in = random_inputs(generator, s);
    OpFixture alone(GetParam(), 1);
    expect_same_bits(attend(s, in), attend(alone, s, in, s.scale()));
  }
}

TEST_P(GridAttentionTest, NanStaysInItsImage) {
  std::mt19937_64 generator(120);
  for (const Sizes& s :
       {Sizes{3, 4, 5, 0, 2, 16}, Sizes{3, 4, 5, 3, 2, 16}, Sizes{3, 3, 64, 0, 2, 64}}) {
    NaiveGridInputs in = random_inputs(generator, s);
    const std::vector<float> clean = attend(s, in);
    const std::int64_t image = s.tokens() * 3 * s.channels();
    std::fill(in.qkv.begin() + image, in.qkv.begin() + 2 * image, kNan);
    const std::vector<float> mixed = attend(s, in);
    for (const std::int64_t other : {0, 2}) {
      expect_same_bits(image_rows(mixed, s, s.channels(), other, other + 1),
                       image_rows(clean, s, s.channels(), other, other + 1));
    }
    EXPECT_TRUE(std::isnan(mixed[static_cast<std::size_t>(s.tokens() * s.channels())]));
  }
}

TEST_P(GridAttentionTest, NanStaysInItsWindow) {
  std::mt19937_64 generator(121);
  const Sizes s{1, 4, 6, 3, 1, 8};  // 2 x 2 windows, the lower ones overhang
  NaiveGridInputs in = random_inputs(generator, s);
  const std::vector<float> clean = attend(s, in);
  std::fill_n(in.qkv.begin(), 3 * s.channels(), kNan);  // the token in the upper left corner
  const std::vector<float> mixed = attend(s, in);
  for (std::int64_t row = 0; row < s.rows(); ++row) {
    const bool same_window = row / s.width < 3 && row % s.width < 3;
    const auto first = static_cast<std::size_t>(row * s.channels());
    if (same_window) {
      EXPECT_TRUE(std::isnan(mixed[first])) << "row " << row;
    } else {
      EXPECT_EQ(mixed[first], clean[first]) << "row " << row;
    }
  }
}

TEST_P(GridAttentionTest, AReplayReadsTheNumberOfImagesAnew) {
  std::mt19937_64 generator(130);
  for (const Sizes& s :
       {Sizes{5, 4, 5, 0, 2, 16}, Sizes{5, 4, 5, 3, 2, 16}, Sizes{5, 3, 64, 0, 2, 64}}) {
    SCOPED_TRACE(::testing::Message() << s);
    const NaiveGridInputs in = random_inputs(generator, s);
    const Tensor qkv = f.poisoned({s.rows(), 3 * s.channels()});
    const Tensor pad = f.floats({3 * s.channels()}, in.pad_qkv);
    const Tensor rel_h = f.floats({2 * s.side_h() - 1, s.dim}, in.rel_pos_h);
    const Tensor rel_w = f.floats({2 * s.side_w() - 1, s.dim}, in.rel_pos_w);
    const Tensor out = f.poisoned({s.rows(), s.channels()});
    const Tensor live = f.ints({1}, {5});
    const auto graph = f.capture([&](ExecContext& ctx) {
      ops::grid_attention(ctx, {.qkv = qkv.view(),
                                .pad_qkv = pad.view(),
                                .rel_pos_h = rel_h.view(),
                                .rel_pos_w = rel_w.view(),
                                .height = s.height,
                                .width = s.width,
                                .window = s.window,
                                .num_heads = s.heads,
                                .head_dim = s.dim,
                                .scale = s.scale(),
                                .images = OpFixture::live(live),
                                .out = out.view()});
    });
    std::vector<float> first;
    for (const std::int64_t images : {2, 5, 0, 2}) {  // small, large, none, small
      Sizes here = s;
      here.images = images;
      std::vector<float> rows(in.qkv);
      std::fill(rows.begin() + here.rows() * 3 * s.channels(), rows.end(), kNan);
      f.write(qkv, rows);
      f.write(live, std::vector<std::int32_t>{static_cast<std::int32_t>(images)});
      f.poison(out);
      f.stream().replay(*graph);
      const std::vector<float> got = f.read(out);
      if (images > 0) expect_naive(here, in, got, 17);
      f.expect_untouched(got, here.rows() * s.channels());
      if (images != 2) continue;
      const std::vector<float> written = image_rows(got, s, s.channels(), 0, images);
      if (!first.empty()) expect_same_bits(written, first);
      first = written;
    }
  }
}

TEST_P(GridAttentionTest, RowsBeyondTheLiveOnesAreFinite) {
  // Where a backend writes them at all: what follows in a graph may compute with them.
  if (f.exact_rows()) GTEST_SKIP() << "this backend does not write them";
  std::mt19937_64 generator(140);
  for (const Sizes& s : {Sizes{2, 4, 5, 3, 1, 16}, Sizes{4, 3, 64, 0, 2, 64}}) {
    const NaiveGridInputs in = random_inputs(generator, s);
    const Tensor live = f.ints({1}, {1});
    const Tensor qkv = f.activations({s.rows(), 3 * s.channels()}, in.qkv);
    const Tensor pad = f.floats({3 * s.channels()}, in.pad_qkv);
    const Tensor rel_h = f.floats({2 * s.side_h() - 1, s.dim}, in.rel_pos_h);
    const Tensor rel_w = f.floats({2 * s.side_w() - 1, s.dim}, in.rel_pos_w);
    const Tensor out = f.poisoned({s.rows(), s.channels()});
    for (const float value : f.run(out, [&](ExecContext& ctx) {
           ops::grid_attention(ctx, {.qkv = qkv.view(),
                                     .pad_qkv = pad.view(),
                                     .rel_pos_h = rel_h.view(),
                                     .rel_pos_w = rel_w.view(),
                                     .height = s.height,
                                     .width = s.width,
                                     .window = s.window,
                                     .num_heads = s.heads,
                                     .head_dim = s.dim,
                                     .scale = s.scale(),
                                     .images = OpFixture::live(live),
                                     .out = out.view()});
         })) {
      ASSERT_TRUE(std::isfinite(value));
    }
  }
}

TEST_P(GridAttentionTest, EmptyInputsAreLegal) {
  const Tensor qkv = make_tensor(f.device(), f.dtype(), {0, 48});
  const Tensor out = make_tensor(f.device(), f.dtype(), {0, 16});
  const Tensor pad = f.floats({48}, std::vector<float>(48, 0.0f));
  const Tensor rel = f.floats({3, 16}, std::vector<float>(48, 0.0f));
  ExecContext ctx = f.ctx();
  EXPECT_NO_THROW(ops::grid_attention(ctx, {.qkv = qkv.view(),
                                            .pad_qkv = pad.view(),
                                            .rel_pos_h = rel.view(),
                                            .rel_pos_w = rel.view(),
                                            .height = 4,
                                            .width = 5,
                                            .window = 2,
                                            .num_heads = 1,
                                            .head_dim = 16,
                                            .scale = 1,
                                            .out = out.view()}));
}

TEST_P(GridAttentionTest, GivesTheWorkspaceBack) {
  const std::size_t before = f.ctx().arena.used();
  std::mt19937_64 generator(150);
  const Sizes s{1, 3, 3, 2, 1, 8};
  (void)attend(s, random_inputs(generator, s));
  EXPECT_EQ(f.ctx().arena.used(), before);
}

TEST_P(GridAttentionTest, NamesWhatIsWrongWithItsArguments) {
  const Tensor qkv = f.poisoned({12, 48});
  const Tensor out = f.poisoned({12, 16});
  const Tensor pad = f.floats({48}, std::vector<float>(48, 0.0f));
  const Tensor rel = f.floats({3, 8}, std::vector<float>(24, 0.0f));
  const ops::GridAttentionArgs good{.qkv = qkv.view(),
                                    .pad_qkv = pad.view(),
                                    .rel_pos_h = rel.view(),
                                    .rel_pos_w = rel.view(),
                                    .height = 2,
                                    .width = 3,
                                    .window = 2,
                                    .num_heads = 2,
                                    .head_dim = 8,
                                    .scale = 1,
                                    .out = out.view()};
  const auto expect = [&](const std::string& message, const auto& change) {
    ops::GridAttentionArgs args = good;
    change(args);
    ExecContext ctx = f.ctx();
    expect_error(ErrorCode::kInvalidArgument, message, [&] { ops::grid_attention(ctx, args); });
  };
  const std::string dtype(to_string(f.dtype()));
  expect("grid_attention: grid must not be empty and window must be >= 0, got 0x3 and 2",
         [](auto& a) { a.height = 0; });
  expect("got 2x0 and 2", [](auto& a) { a.width = 0; });
  expect("got 2x3 and -1", [](auto& a) { a.window = -1; });
  expect("num_heads must be > 0 and head_dim a positive multiple of 8, got 0 and 8",
         [](auto& a) { a.num_heads = 0; });
  expect("got 2 and 12", [](auto& a) { a.head_dim = 12; });
  expect("got 2 and 0", [](auto& a) { a.head_dim = 0; });
  expect("scale must be finite, got nan", [](auto& a) { a.scale = kNan; });
  expect("qkv must be float32, float16 or bfloat16, got int32",
         [](auto& a) { a.qkv.dtype = DType::kI32; });
  expect("qkv must have rank 2, got shape [576]", [](auto& a) { a.qkv.shape = {576}; });
  expect("qkv has 11 rows, which are not whole images of 2x3", [](auto& a) {
    a.qkv.shape = {11, 48};
  });
  expect("qkv must be " + dtype + " [12, 48], got " + dtype + " [12, 40]", [](auto& a) {
    a.qkv.shape = {12, 40};
  });
  expect("qkv of shape [12, 48] has no memory", [](auto& a) { a.qkv.data = nullptr; });
  expect("pad_qkv must be float32 [48], got float32 [47]", [](auto& a) { a.pad_qkv.shape = {47}; });
  expect("rel_pos_h must be float32 [3, 8], got float32 [5, 8]", [](auto& a) {
    a.rel_pos_h.shape = {5, 8};
  });
  expect("rel_pos_w must be float32 [3, 8], got int32 [3, 8]",
         [](auto& a) { a.rel_pos_w.dtype = DType::kI32; });
  expect("rel_pos_w must be float32 [5, 8], got float32 [3, 8]", [](auto& a) { a.window = 0; });
  expect("out must be " + dtype + " [12, 16], got", [](auto& a) { a.out.shape = {6, 16}; });
  expect("out and qkv must not overlap",
         [](auto& a) { a.out.data = const_cast<std::byte*>(a.qkv.data) + 16; });
}

class Im2colTest : public ::testing::TestWithParam<OpCase> {
 protected:
  OpFixture f{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Devices, Im2colTest, ::testing::ValuesIn(op_cases()), op_case_name);

TEST_P(Im2colTest, GathersTheNeighboursOfEveryPixel) {
  const Tensor x = f.activations({4, 1}, {1, 2, 3, 4});
  const Tensor out = f.poisoned({4, 9});
  EXPECT_EQ(f.run(out,
                  [&](ExecContext& ctx) {
                    ops::im2col_3x3(
                        ctx,
                        {.x = x.view(), .height = 2, .width = 2, .stride = 1, .out = out.view()});
                  }),
            (std::vector<float>{0, 0, 0, 0, 1, 2, 0, 3, 4,  //
                                0, 0, 0, 1, 2, 0, 3, 4, 0,  //
                                0, 1, 2, 0, 3, 4, 0, 0, 0,  //
                                1, 2, 0, 3, 4, 0, 0, 0, 0}));
}

TEST_P(Im2colTest, EqualsTheDefinitionForEverySize) {
  for_all(30, [&](std::mt19937_64& generator) {
    const std::int64_t images = uniform(generator, 1, 3);
    const std::int64_t height = uniform(generator, 1, 9);
    const std::int64_t width = uniform(generator, 1, 9);
    const std::int64_t stride = uniform(generator, 1, 2);
    const std::int64_t channels =
        uniform(generator, 0, 1) == 0 ? uniform(generator, 1, 12) : 8 * uniform(generator, 1, 20);
    SCOPED_TRACE(::testing::Message()
                 << height << "x" << width << "x" << channels << ", stride " << stride);
    const std::int64_t pixels = images * height * width;
    const std::vector<float> values = f.rounded(normal_values(generator, pixels * channels));
    const Tensor x = f.activations({pixels, channels}, values);
    const std::int64_t out_rows =
        images * ((height + stride - 1) / stride) * ((width + stride - 1) / stride);
    const Tensor out = f.poisoned({out_rows, 9 * channels});
    expect_same_bits(f.run(out,
                           [&](ExecContext& ctx) {
                             ops::im2col_3x3(ctx, {.x = x.view(),
                                                   .height = height,
                                                   .width = width,
                                                   .stride = stride,
                                                   .out = out.view()});
                           }),
                     naive_im2col_3x3(values, height, width, channels, stride));
  });
}

TEST_P(Im2colTest, AReplayWritesTheLiveRowsAlone) {
  std::mt19937_64 generator(1);
  const std::vector<float> values = f.rounded(normal_values(generator, 3 * 9 * 8));
  const Tensor x = f.activations({27, 8}, values);
  const Tensor out = f.poisoned({12, 72});  // 3 images of 3 x 3 with stride 2
  const Tensor live = f.ints({1}, {12});
  const std::vector<float> want = naive_im2col_3x3(values, 3, 3, 8, 2);
  const auto graph = f.capture([&](ExecContext& ctx) {
    ops::im2col_3x3(ctx, {.x = x.view(),
                          .height = 3,
                          .width = 3,
                          .stride = 2,
                          .rows = OpFixture::live(live),
                          .out = out.view()});
  });
  for (const std::int32_t rows : {12, 4, 0, 8}) {
    f.write(live, std::vector<std::int32_t>{rows});
    f.poison(out);
    f.stream().replay(*graph);
    const std::vector<float> got = f.read(out);
    expect_same_bits({got.begin(), got.begin() + rows * 72},
                     {want.begin(), want.begin() + rows * 72});
    f.expect_untouched(got, rows * 72);
  }
}

TEST_P(Im2colTest, EmptyInputsAreLegal) {
  const Tensor x = make_tensor(f.device(), f.dtype(), {0, 4});
  const Tensor out = make_tensor(f.device(), f.dtype(), {0, 36});
  ExecContext ctx = f.ctx();
  EXPECT_NO_THROW(ops::im2col_3x3(
      ctx, {.x = x.view(), .height = 2, .width = 2, .stride = 1, .out = out.view()}));
}

TEST_P(Im2colTest, NamesWhatIsWrongWithItsArguments) {
  const Tensor x = f.poisoned({12, 4});
  const Tensor out = f.poisoned({8, 36});
  const ops::Im2colArgs good{
      .x = x.view(), .height = 2, .width = 3, .stride = 2, .out = out.view()};
  const auto expect = [&](const std::string& message, const auto& change) {
    ops::Im2colArgs args = good;
    args.out.shape = {4, 36};  // two images, 1 x 2 each
    change(args);
    ExecContext ctx = f.ctx();
    expect_error(ErrorCode::kInvalidArgument, message, [&] { ops::im2col_3x3(ctx, args); });
  };
  const std::string dtype(to_string(f.dtype()));
  expect("im2col_3x3: grid must not be empty and stride 1 or 2, got 0x3 and 2",
         [](auto& a) { a.height = 0; });
  expect("got 2x0 and 2", [](auto& a) { a.width = 0; });
  expect("got 2x3 and 3", [](auto& a) { a.stride = 3; });
  expect("got 2x3 and 0", [](auto& a) { a.stride = 0; });
  expect("x must be float32, float16 or bfloat16, got int32",
         [](auto& a) { a.x.dtype = DType::kI32; });
  expect("x must have rank 2, got shape [48]", [](auto& a) { a.x.shape = {48}; });
  expect("x has 11 rows, which are not whole images of 2x3", [](auto& a) { a.x.shape = {11, 4}; });
  expect("out must be " + dtype + " [4, 36], got " + dtype + " [8, 36]", [](auto& a) {
    a.out.shape = {8, 36};
  });
  expect("out must be " + dtype + " [12, 36], got", [](auto& a) { a.stride = 1; });
  expect("out and x must not overlap",
         [](auto& a) { a.out.data = const_cast<std::byte*>(a.x.data); });
}

}  // namespace
}  // namespace fovea::test
