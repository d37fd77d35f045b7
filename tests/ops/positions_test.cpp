// Interpolated position embeddings on every backend. Check values: docs/reference/qwen_glm.md,
// "Interpolated positions".
#include "fovea/tower/ops/patch.h"

#include <gtest/gtest.h>

#include <numeric>

#include "ops/merge_order.h"
#include "support/expect_error.h"
#include "support/naive_ops.h"
#include "support/op_fixture.h"
#include "support/property.h"

namespace fovea::test {
namespace {

class PositionsTest : public ::testing::TestWithParam<OpCase> {
 protected:
  OpFixture f{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Devices, PositionsTest, ::testing::ValuesIn(op_cases()), op_case_name);

/// positions of every patch of one grid in merge-block order
std::vector<std::int32_t> positions_of(std::int32_t height, std::int32_t width) {
  std::vector<std::int32_t> out;
  for (const auto [y, x] : merge_order(height, width)) out.insert(out.end(), {y, x, height, width});
  return out;
}

TEST_P(PositionsTest, InterpolateToyTables) {
  std::vector<float> table(16);  // E[k] = k on a 4 x 4 grid
  std::iota(table.begin(), table.end(), 0.0f);
  const Tensor device_table = f.floats({16, 1}, table);
  const auto interpolate = [&](std::int32_t height, std::int32_t width) {
    const Tensor positions = f.ints({height * width, 4}, positions_of(height, width));
    const Tensor x = f.poisoned({height * width, 1});
    const std::vector<float> zeros(static_cast<std::size_t>(height * width), 0.0f);
    return f.run_in_place(x, zeros, [&](ExecContext& ctx) {
      ops::add_positions_bilinear(ctx, {.table = device_table.view(),
                                        .positions = positions.view(),
                                        .table_height = 4,
                                        .table_width = 4,
                                        .x = x.view()});
    });
  };
  f.expect_close(interpolate(2, 6), {0, .6, 12, 12.6, 1.2, 1.8, 13.2, 13.8, 2.4, 3, 14.4, 15},
                 OpClass::kPointwise);
  f.expect_close(interpolate(6, 4), {0,   1,   2.4, 3.4,  2,   3,    4.4, 5.4, 4.8,  5.8,  7.2, 8.2,
                                     6.8, 7.8, 9.2, 10.2, 9.6, 10.6, 12,  13,  11.6, 12.6, 14,  15},
                 OpClass::kPointwise);
}

TEST_P(PositionsTest, NeighboursAndWeightsOfAWorkedGrid) {
  // Grid 4 x 6 on a table of side 48: one column per expected neighbour of every row below, 1 at
  // that neighbour, so that the result is the weight.
  struct Row {
    std::int32_t y, x;
    std::array<std::int64_t, 4> index;
    std::array<double, 4> weight;
  };
  const std::vector<Row> rows{
      {0, 0, {0, 1, 48, 49}, {1, 0, 0, 0}},
      {0, 1, {9, 10, 57, 58}, {.6000004, .3999996, 0, 0}},
      {1, 0, {720, 721, 768, 769}, {.333333, 0, .666667, 0}},
      {1, 1, {729, 730, 777, 778}, {.1999999, .1333331, .4000004, .2666665}},
      {0, 2, {18, 19, 66, 67}, {.2000008, .7999992, 0, 0}},
      {0, 3, {28, 29, 76, 77}, {.7999992, .2000008, 0, 0}},
      {1, 2, {738, 739, 786, 787}, {.0666669, .2666662, .1333339, .5333331}},
      {1, 3, {748, 749, 796, 797}, {.2666662, .0666669, .5333331, .1333339}},
      {3, 5, {2303, 2303, 2303, 2303}, {1, 1, 1, 1}},  // all neighbours are one entry
  };
  const std::size_t cols = 4 * rows.size();
  std::vector<float> table(48 * 48 * cols, 0.0f);
  std::vector<std::int32_t> positions;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t i = 0; i < 4; ++i)
      table[static_cast<std::size_t>(rows[r].index[i]) * cols + 4 * r + i] = 1.0f;
    positions.insert(positions.end(), {rows[r].y, rows[r].x, 4, 6});
  }
  const auto num_rows = static_cast<std::int64_t>(rows.size());
  const auto num_cols = static_cast<std::int64_t>(cols);
  const Tensor device_table = f.floats({48 * 48, num_cols}, table);
  const Tensor where = f.ints({num_rows, 4}, positions);
  const Tensor x = f.poisoned({num_rows, num_cols});
  const std::vector<float> zeros(rows.size() * cols, 0.0f);
  const auto got = f.run_in_place(x, zeros, [&](ExecContext& ctx) {
    ops::add_positions_bilinear(ctx, {.table = device_table.view(),
                                      .positions = where.view(),
                                      .table_height = 48,
                                      .table_width = 48,
                                      .x = x.view()});
  });
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t i = 0; i < 4; ++i) {
      const double slack = f.dtype() == DType::kF32 ? 6e-8 : 2e-3;  // printed digits; one rounding
      EXPECT_NEAR(got[r * cols + 4 * r + i], rows[r].weight[i], slack)
          << "row " << r << " neighbour " << i;
    }
  }
}

TEST_P(PositionsTest, MatchDoublePrecisionForAnyGrid) {
  for_all(10, [&](std::mt19937_64& generator) {
    const std::int64_t table_height = uniform(generator, 1, 9);
    const std::int64_t table_width = uniform(generator, 1, 9);
    const std::int64_t cols = uniform(generator, 1, 70);
    const auto height = static_cast<std::int32_t>(2 * uniform(generator, 1, 8));
    const auto width = static_cast<std::int32_t>(2 * uniform(generator, 1, 8));
    auto positions = positions_of(height, width);
    positions.insert(positions.end(), {0, 0, 1, 1});  // a grid of one patch
    const auto rows = static_cast<std::int64_t>(positions.size()) / 4;
    const auto table = normal_values(generator, table_height * table_width * cols);
    auto before = f.rounded(normal_values(generator, rows * cols));
    const auto want = naive_add_positions(before, table, positions, table_height, table_width);
    before.resize(before.size() + static_cast<std::size_t>(cols), 7.0f);
    positions.insert(positions.end(), {-1, -1, -1, -1});
    const Tensor device_table = f.floats({table_height * table_width, cols}, table);
    const Tensor where = f.ints({rows + 1, 4}, positions);
    const Tensor live = f.ints({1}, {static_cast<std::int32_t>(rows)});
    const Tensor x = f.poisoned({rows + 1, cols});
    const auto got = f.run_in_place(x, before, [&](ExecContext& ctx) {
      ops::add_positions_bilinear(ctx, {.table = device_table.view(),
                                        .positions = where.view(),
                                        .table_height = table_height,
                                        .table_width = table_width,
                                        .rows = OpFixture::live(live),
                                        .x = x.view()});
    });
    // Two roundings where the dtype is narrow: of the interpolated value and of the sum.
    f.expect_close(got, want, f.dtype() == DType::kF32 ? OpClass::kNorm : OpClass::kAttention);
    f.expect_untouched(got, rows * cols, before);
  });
}

TEST_P(PositionsTest, OutsideTheirGridAreRefused) {
  if (!f.exact_rows()) GTEST_SKIP() << "positions in device memory are not checked";
  const Tensor table = f.floats({4, 1}, {0, 1, 2, 3});
  const Tensor x = f.poisoned({1, 1});
  for (const auto& position :
       {std::vector<std::int32_t>{2, 0, 2, 2}, {0, 2, 2, 2}, {-1, 0, 2, 2}}) {
    const Tensor positions = f.ints({1, 4}, position);
    ExecContext ctx = f.ctx();
    expect_error(ErrorCode::kInternal, "add_positions_bilinear: row 0 is at (", [&] {
      ops::add_positions_bilinear(ctx, {.table = table.view(),
                                        .positions = positions.view(),
                                        .table_height = 2,
                                        .table_width = 2,
                                        .x = x.view()});
    });
  }
}

TEST_P(PositionsTest, NameWhatIsWrongWithTheirArguments) {
  const Tensor table = f.floats({4, 3}, std::vector<float>(12, 0.0f));
  const Tensor positions = f.ints({2, 4}, std::vector<std::int32_t>(8, 0));
  const Tensor x = f.poisoned({2, 3});
  const ops::AddPositionsArgs good{.table = table.view(),
                                   .positions = positions.view(),
                                   .table_height = 2,
                                   .table_width = 2,
                                   .x = x.view()};
  const auto expect = [&](const std::string& message, const auto& change) {
    ops::AddPositionsArgs args = good;
    change(args);
    ExecContext ctx = f.ctx();
    expect_error(ErrorCode::kInvalidArgument, message,
                 [&] { ops::add_positions_bilinear(ctx, args); });
  };
  expect("table_height and table_width must be > 0, got 0 and 2",
         [](auto& a) { a.table_height = 0; });
  expect("table_height and table_width must be > 0, got 2 and 0",
         [](auto& a) { a.table_width = 0; });
  expect("x must have rank 2", [](auto& a) { a.x.shape = {6}; });
  expect("table must be float32 [6, 3], got float32 [4, 3]", [](auto& a) { a.table_width = 3; });
  expect("positions must be int32 [2, 4], got int32 [2, 2]", [](auto& a) {
    a.positions.shape = {2, 2};
  });
}

TEST_P(PositionsTest, NoRowsIsLegal) {
  const Tensor positions = make_tensor(f.device(), DType::kI32, {0, 4});
  const Tensor x = make_tensor(f.device(), f.dtype(), {0, 12});
  const Tensor table = f.floats({1, 12}, std::vector<float>(12, 0.0f));
  ExecContext ctx = f.ctx();
  EXPECT_NO_THROW(ops::add_positions_bilinear(ctx, {.table = table.view(),
                                                    .positions = positions.view(),
                                                    .table_height = 1,
                                                    .table_width = 1,
                                                    .x = x.view()}));
}

}  // namespace
}  // namespace fovea::test
