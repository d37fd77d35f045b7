// Position embeddings interpolated with a filter that widens for small grids, on every backend.
// Check values are worked out by hand, as torch.nn.functional.interpolate computes them.
#include <gtest/gtest.h>

#include "fovea/tower/ops/patch.h"
#include "ops/merge_order.h"
#include "support/expect_error.h"
#include "support/naive_ops.h"
#include "support/op_fixture.h"
#include "support/property.h"

namespace fovea::test {
namespace {

class AntialiasedPositionsTest : public ::testing::TestWithParam<OpCase> {
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
      ops::add_positions_antialiased(ctx, {.table = device_table.view(),
                                           .positions = where.view(),
                                           .table_height = table_height,
                                           .table_width = table_width,
                                           .x = x.view()});
    });
  }

  OpFixture f{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Devices, AntialiasedPositionsTest, ::testing::ValuesIn(op_cases()),
                         op_case_name);

TEST_P(AntialiasedPositionsTest, SmallGridsGetMeansOfManyEntries) {
  // Scale 2, centres 1 and 3 of 4 entries: weights .75, .75, .25 of the first three, over 1.75.
  f.expect_close(resized({0, 1, 4, 9}, 1, 4, 1, 2), {1.75 / 1.75, (.25 + 3 + 6.75) / 1.75},
                 OpClass::kPointwise);
  // Scale 4, one centre at 2: weights .625, .875, .875, .625, over 3.
  f.expect_close(resized({0, 1, 4, 9}, 1, 4, 1, 1), {(.875 + 3.5 + 5.625) / 3},
                 OpClass::kPointwise);
  f.expect_close(resized({0, 1, 4, 9}, 4, 1, 1, 1), {(.875 + 3.5 + 5.625) / 3},
                 OpClass::kPointwise);
}

TEST_P(AntialiasedPositionsTest, LargeGridsGetNeighboursAlone) {
  f.expect_close(resized({0, 1, 4, 9}, 1, 4, 1, 8), {0, .25, .75, 1.75, 3.25, 5.25, 7.75, 9},
                 OpClass::kPointwise);
}

TEST_P(AntialiasedPositionsTest, AGridAsLargeAsTheTableGetsTheTable) {
  const std::vector<float> table{0, 1, 4, 9, 16, 25};
  EXPECT_EQ(resized(table, 2, 3, 2, 3), table);
  EXPECT_EQ(resized(table, 3, 2, 3, 2), table);
}

TEST_P(AntialiasedPositionsTest, MatchDoublePrecisionForAnyGrid) {
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
        naive_add_positions_antialiased(before, table, positions, table_height, table_width);
    before.resize(before.size() + static_cast<std::size_t>(cols), 7.0f);
    positions.insert(positions.end(), {-1, -1, -1, -1});
    const Tensor device_table = f.floats({table_height * table_width, cols}, table);
    const Tensor where = f.ints({rows + 1, 4}, positions);
    const Tensor live = f.ints({1}, {static_cast<std::int32_t>(rows)});
    const Tensor x = f.poisoned({rows + 1, cols});
    const auto got = f.run_in_place(x, before, [&](ExecContext& ctx) {
      ops::add_positions_antialiased(ctx, {.table = device_table.view(),
                                           .positions = where.view(),
                                           .table_height = table_height,
                                           .table_width = table_width,
                                           .rows = OpFixture::live(live),
                                           .x = x.view()});
    });
    // Weights are quotients of sums in f32; where the dtype is narrow, there are two roundings.
    f.expect_close(got, want, OpClass::kAttention);
    f.expect_untouched(got, rows * cols, before);
  });
}

TEST_P(AntialiasedPositionsTest, CheckTheirArgumentsAsTheOtherOnes) {
  const Tensor table = f.floats({4, 3}, std::vector<float>(12, 0.0f));
  const Tensor positions = f.ints({1, 4}, {2, 0, 2, 2});
  const Tensor x = f.poisoned({1, 3});
  ExecContext ctx = f.ctx();
  const auto run = [&](std::int64_t table_width) {
    ops::add_positions_antialiased(ctx, {.table = table.view(),
                                         .positions = positions.view(),
                                         .table_height = 2,
                                         .table_width = table_width,
                                         .x = x.view()});
  };
  expect_error(ErrorCode::kInvalidArgument,
               "add_positions_antialiased: table must be float32 [6, 3], got float32 [4, 3]",
               [&] { run(3); });
  if (!f.exact_rows()) return;  // positions in device memory are not checked
  expect_error(ErrorCode::kInternal,
               "add_positions_antialiased: row 0 is at (2, 0) of a 2 x 2 grid", [&] { run(2); });
}

}  // namespace
}  // namespace fovea::test
