// Attention with relative positions on every backend: known values, double precision, arguments
// that are refused.
#include "fovea/tower/ops/grid.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "support/expect_error.h"
#include "support/grid_attention_fixture.h"
#include "support/next_free.h"

namespace fovea::test {
namespace {

INSTANTIATE_TEST_SUITE_P(Devices, GridAttentionTest, ::testing::ValuesIn(op_cases()), op_case_name);

/// Rows of pairs as rows of 8 components, zeros behind.
std::vector<float> rows_of_8(const std::vector<std::array<float, 2>>& pairs) {
  std::vector<float> rows;
  for (const auto& [first, second] : pairs) {
    rows.insert(rows.end(), {first, second, 0, 0, 0, 0, 0, 0});
  }
  return rows;
}

TEST_P(GridAttentionTest, MatchesAWorkedExample) {
  // A grid of 2 x 3, one head of 2 components: docs/reference/deepseek_ocr.md, "Relative
  // positions".
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
  const GridSizes s{1, 1, 1, 0, 3, 16};
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
  // not, more of them than a GPU has SMs.
  std::uint64_t seed = 75;
  for (const GridSizes& s :
       {GridSizes{2, 2, 32, 0, 2, 64}, GridSizes{3, 6, 32, 0, 1, 64}, GridSizes{2, 4, 40, 0, 3, 64},
        GridSizes{1, 1, 64, 0, 1, 64}, GridSizes{3, 3, 64, 0, 2, 64}, GridSizes{6, 8, 64, 0, 8, 64},
        GridSizes{2, 5, 80, 0, 2, 64}, GridSizes{1, 3, 40, 0, 2, 64}}) {
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
  const GridSizes s{1, 3, 4, 0, 1, 8};
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
  const std::byte* const before = next_free(f.ctx().arena);
  std::mt19937_64 generator(150);
  const GridSizes s{1, 3, 3, 2, 1, 8};
  (void)attend(s, random_inputs(generator, s));
  EXPECT_EQ(next_free(f.ctx().arena), before);
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

}  // namespace
}  // namespace fovea::test
