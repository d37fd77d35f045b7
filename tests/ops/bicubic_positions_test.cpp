// Position embeddings interpolated with cubic weights, on every backend. Check values are those of
// torch.nn.functional.interpolate.
#include <gtest/gtest.h>

#include <numeric>

#include "fovea/tower/ops/patch.h"
#include "ops/merge_order.h"
#include "support/expect_error.h"
#include "support/naive_ops.h"
#include "support/op_fixture.h"
#include "support/property.h"

namespace fovea::test {
namespace {

class BicubicPositionsTest : public ::testing::TestWithParam<OpCase> {
 protected:
  /// One column of a table at every patch of a grid, row by row.
  std::vector<float> resized(const std::vector<float>& table, std::int64_t table_height,
                             std::int64_t table_width, std::int32_t height, std::int32_t width) {
    std::vector<std::int32_t> positions;
    for (std::int32_t y = 0; y < height; ++y) {
      for (std::int32_t x = 0; x < width; ++x) {
        positions.insert(positions.end(), {y, x, height, width});
      }
    }
    const Tensor device_table = f.floats({table_height * table_width, 1}, table);
    const Tensor where = f.ints({height * width, 4}, positions);
    const Tensor x = f.poisoned({height * width, 1});
    const std::vector<float> zeros(static_cast<std::size_t>(height * width), 0.0f);
    return f.run_in_place(x, zeros, [&](ExecContext& ctx) {
      ops::add_positions_bicubic(ctx, {.table = device_table.view(),
                                       .positions = where.view(),
                                       .table_height = table_height,
                                       .table_width = table_width,
                                       .x = x.view()});
    });
  }

  /// The same of a square table.
  std::vector<float> resized(const std::vector<float>& table, std::int64_t side,
                             std::int32_t height, std::int32_t width) {
    return resized(table, side, side, height, width);
  }

  OpFixture f{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Devices, BicubicPositionsTest, ::testing::ValuesIn(op_cases()),
                         op_case_name);

TEST_P(BicubicPositionsTest, InterpolateToyTables) {
  std::vector<float> ascending(16);
  std::iota(ascending.begin(), ascending.end(), 0.0f);
  f.expect_close(resized(ascending, 4, 2, 2), {2.03125, 4.21875, 10.78125, 12.96875},
                 OpClass::kPointwise);
  f.expect_close(resized(ascending, 4, 2, 3),
                 {1.7511579, 3.125, 4.4988437, 10.5011597, 11.875, 13.2488451},
                 OpClass::kPointwise);
  const std::vector<float> sparse{0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 3};
  f.expect_close(resized(sparse, 4, 3, 2),
                 {.5117912, -.1009115, -.1669922, .5732423, -.0301649, 1.4757668},
                 OpClass::kPointwise);
}

TEST_P(BicubicPositionsTest, InterpolateTheToyTablesOfGlm) {
  // Grid 2 x 6, row by row, of tables that hold k and k * k.
  std::vector<float> linear;
  std::vector<float> square;
  for (int k = 0; k < 16; ++k) {
    linear.push_back(static_cast<float>(k));
    square.push_back(static_cast<float>(k * k));
  }
  f.expect_close(resized(linear, 4, 2, 6),
                 {1.538194, 2.03125, 2.837963, 3.412037, 4.21875, 4.711806,  //
                  10.288194, 10.78125, 11.587963, 12.162037, 12.96875, 13.461806},
                 OpClass::kPointwise);
  f.expect_close(resized(square, 4, 2, 6),
                 {3.131076, 5.039062, 8.872685, 12.460648, 18.710938, 22.966146,  //
                  106.611979, 117.148438, 135.099537, 148.733796, 169.101562, 181.985243},
                 OpClass::kPointwise);
}

TEST_P(BicubicPositionsTest, WeightsAreThoseOfTheReference) {
  struct Case {
    std::int32_t cols, col;  // of a grid one row high
    std::int64_t first;      // entry of the table that has the first weight
    std::vector<double> weights;
  };
  constexpr std::int64_t kSide = 24;
  const std::vector<double> halves{-.09375, .59375, .59375, -.09375};
  for (const Case& c : {Case{4, 0, 1, halves}, Case{4, 3, 19, halves}, Case{6, 0, 0, halves},
                        Case{6, 5, 20, halves},
                        // Taps 0, 0, 0, 1 and 0, 0, 1, 2: entries before the first are the first.
                        Case{32, 0, 0, {-.0102539 + .1147461 + .9672852, -.0717773}},
                        Case{32, 1, 0, {-.065918 + .4262695, .7495117, -.1098633}},
                        Case{32, 2, 0, {-.1098633, .7495117, .4262695, -.065918}}}) {
    SCOPED_TRACE(::testing::Message() << c.col << " of " << c.cols);
    for (std::int64_t tap = 0; tap < std::ssize(c.weights); ++tap) {
      std::vector<float> table(kSide * kSide, 0.0f);
      for (std::int64_t y = 0; y < kSide; ++y) {
        table[static_cast<std::size_t>(y * kSide + c.first + tap)] = 1;
      }
      EXPECT_NEAR(resized(table, kSide, 1, c.cols)[static_cast<std::size_t>(c.col)],
                  f.rounded({static_cast<float>(c.weights[static_cast<std::size_t>(tap)])})[0],
                  f.dtype() == DType::kF32 ? 1e-6 : 5e-3);
    }
  }
}

TEST_P(BicubicPositionsTest, AGridAsLargeAsTheTableGetsTheTable) {
  std::vector<float> table(81);
  for (std::size_t k = 0; k < table.size(); ++k) table[k] = static_cast<float>(k * k % 64);
  EXPECT_EQ(resized(table, 9, 9, 9), table);
}

TEST_P(BicubicPositionsTest, InterpolateTablesThatAreNoSquares) {
  // 2 x 3 and 3 x 2 entries with k * k in them.
  const std::vector<float> table{0, 1, 4, 9, 16, 25};
  f.expect_close(resized(table, 2, 3, 3, 2),
                 {-.759847, 1.632243, 5.195312, 13.28125, 11.150471, 24.930256},
                 OpClass::kPointwise);
  f.expect_close(resized(table, 3, 2, 2, 3),
                 {.331109, 1.367188, 2.403266, 12.707089, 17.539062, 22.371042},
                 OpClass::kPointwise);
  EXPECT_EQ(resized(table, 2, 3, 2, 3), table);
  EXPECT_EQ(resized(table, 3, 2, 3, 2), table);
}

TEST_P(BicubicPositionsTest, ShrinkingDoesNotWidenTheFilter) {
  std::vector<float> table(64 * 64, 0.0f);
  for (std::size_t y = 0; y < 64; ++y) table[y * 64 + 4] = 1;
  const std::vector<float> got = resized(table, 64, 1, 16);
  EXPECT_NEAR(got[0], 0, 1e-6) << "entries 0 to 3";
  EXPECT_NEAR(got[1], -.09375, 1e-6) << "entries 4 to 7";
  EXPECT_NEAR(got[2], 0, 1e-6) << "entries 8 to 11";
}

TEST_P(BicubicPositionsTest, MatchDoublePrecisionForAnyGrid) {
  for_all(10, [&](std::mt19937_64& generator) {
    const std::int64_t table_height = uniform(generator, 1, 9);
    const std::int64_t table_width = uniform(generator, 1, 9);
    const std::int64_t cols = uniform(generator, 1, 70);
    const auto height = static_cast<std::int32_t>(2 * uniform(generator, 1, 8));
    const auto width = static_cast<std::int32_t>(2 * uniform(generator, 1, 8));
    std::vector<std::int32_t> positions{0, 0, 1, 1};  // a grid of one patch
    for (const auto [y, x] : merge_order(height, width)) {
      positions.insert(positions.end(), {y, x, height, width});
    }
    const auto rows = static_cast<std::int64_t>(positions.size()) / 4;
    const auto table = normal_values(generator, table_height * table_width * cols);
    auto before = f.rounded(normal_values(generator, rows * cols));
    const auto want =
        naive_add_positions_bicubic(before, table, positions, table_height, table_width);
    before.resize(before.size() + static_cast<std::size_t>(cols), 7.0f);
    positions.insert(positions.end(), {-1, -1, -1, -1});
    const Tensor device_table = f.floats({table_height * table_width, cols}, table);
    const Tensor where = f.ints({rows + 1, 4}, positions);
    const Tensor live = f.ints({1}, {static_cast<std::int32_t>(rows)});
    const Tensor x = f.poisoned({rows + 1, cols});
    const auto got = f.run_in_place(x, before, [&](ExecContext& ctx) {
      ops::add_positions_bicubic(ctx, {.table = device_table.view(),
                                       .positions = where.view(),
                                       .table_height = table_height,
                                       .table_width = table_width,
                                       .rows = OpFixture::live(live),
                                       .x = x.view()});
    });
    // Terms of the cubic weights reach 12 and cancel, so weights are off by some 1e-6; where the
    // dtype is narrow, there are two roundings, of the interpolated value and of the sum.
    f.expect_close(got, want, OpClass::kAttention);
    f.expect_untouched(got, rows * cols, before);
  });
}

TEST_P(BicubicPositionsTest, CheckTheirArgumentsAsTheBilinearOnes) {
  const Tensor table = f.floats({4, 3}, std::vector<float>(12, 0.0f));
  const Tensor positions = f.ints({1, 4}, {2, 0, 2, 2});
  const Tensor x = f.poisoned({1, 3});
  ExecContext ctx = f.ctx();
  const auto run = [&](std::int64_t table_width) {
    ops::add_positions_bicubic(ctx, {.table = table.view(),
                                     .positions = positions.view(),
                                     .table_height = 2,
                                     .table_width = table_width,
                                     .x = x.view()});
  };
  expect_error(ErrorCode::kInvalidArgument,
               "add_positions_bicubic: table must be float32 [6, 3], got float32 [4, 3]",
               [&] { run(3); });
  if (!f.exact_rows()) return;  // positions in device memory are not checked
  expect_error(ErrorCode::kInternal, "add_positions_bicubic: row 0 is at (2, 0) of a 2 x 2 grid",
               [&] { run(2); });
}

}  // namespace
}  // namespace fovea::test
