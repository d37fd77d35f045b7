// Moving, offsetting and averaging rows on every backend: known places, every geometry, live
// counts, replay.
#include "fovea/tower/ops/rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "support/expect_error.h"
#include "support/op_fixture.h"
#include "support/property.h"

namespace fovea::test {
namespace {

std::size_t index_of(std::int64_t row, std::int64_t col, std::int64_t cols) {
  return static_cast<std::size_t>(row * cols + col);
}

class RowsTest : public ::testing::TestWithParam<OpCase> {
 protected:
  OpFixture f{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Devices, RowsTest, ::testing::ValuesIn(op_cases()), op_case_name);

TEST_P(RowsTest, InsertsARowInFrontOfEveryBlock) {
  // Two blocks of two rows become two blocks of three, the first row of each a constant.
  const Tensor tokens = f.activations({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor constant = f.floats({1, 2}, {-1, -2});
  const Tensor out = f.poisoned({6, 2});
  const std::vector<float> got = f.run(out, [&](ExecContext& ctx) {
    ops::copy_row_blocks(ctx, {.x = constant.view(),
                               .x_block_rows = 0,
                               .count = 1,
                               .out = out.view(),
                               .out_block_rows = 3});
    ops::copy_row_blocks(ctx, {.x = tokens.view(),
                               .x_block_rows = 2,
                               .count = 2,
                               .out = out.view(),
                               .out_block_rows = 3,
                               .out_first = 1});
  });
  EXPECT_EQ(got, (std::vector<float>{-1, -2, 1, 2, 3, 4, -1, -2, 5, 6, 7, 8}));
}

TEST_P(RowsTest, DropsTheFirstRowOfEveryBlock) {
  const Tensor x = f.activations({6, 1}, {9, 1, 2, 9, 3, 4});
  const Tensor out = f.poisoned({4, 1});
  const std::vector<float> got = f.run(out, [&](ExecContext& ctx) {
    ops::copy_row_blocks(ctx, {.x = x.view(),
                               .x_block_rows = 3,
                               .x_first = 1,
                               .count = 2,
                               .out = out.view(),
                               .out_block_rows = 2});
  });
  EXPECT_EQ(got, (std::vector<float>{1, 2, 3, 4}));
}

TEST_P(RowsTest, JoinsColumns) {
  const Tensor left = f.activations({2, 2}, {1, 2, 5, 6});
  const Tensor right = f.activations({2, 2}, {3, 4, 7, 8});
  const Tensor out = f.poisoned({2, 4});
  const std::vector<float> got = f.run(out, [&](ExecContext& ctx) {
    for (const Tensor* part : {&left, &right}) {
      ops::copy_row_blocks(ctx, {.x = part->view(),
                                 .x_block_rows = 1,
                                 .count = 1,
                                 .out = out.view(),
                                 .out_block_rows = 1,
                                 .out_column = part == &left ? 0 : 2});
    }
  });
  EXPECT_EQ(got, (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST_P(RowsTest, EmitsNothingButTheRowsOfTheDefinition) {
  // Every place that the definition does not name keeps its NaN.
  for_all(40, [&](std::mt19937_64& generator) {
    const bool constant = uniform(generator, 0, 2) == 0;
    const std::int64_t blocks = uniform(generator, 1, 5);
    const std::int64_t count = uniform(generator, 1, 4);
    const std::int64_t x_first = uniform(generator, 0, 2);
    const std::int64_t x_rows = x_first + count + (constant ? 0 : uniform(generator, 0, 2));
    const std::int64_t out_first = uniform(generator, 0, 3);
    const std::int64_t out_rows = out_first + count + uniform(generator, 0, 3);
    const std::int64_t step = uniform(generator, 0, 1) == 0 ? 8 : 1;  // vectors and single elements
    const std::int64_t cols = step * uniform(generator, 1, 20);
    const std::int64_t column = step * uniform(generator, 0, 3);
    const std::int64_t out_cols = column + cols + step * uniform(generator, 0, 3);
    const Shape shape{constant ? x_rows : blocks * x_rows, cols};
    const std::vector<float> values = f.rounded(normal_values(generator, shape.elements()));
    const Tensor x = constant ? f.floats(shape, values) : f.activations(shape, values);
    const Tensor out = f.poisoned({blocks * out_rows, out_cols});

    std::vector<float> want(static_cast<std::size_t>(out.shape.elements()), kNan);
    for (std::int64_t b = 0; b < blocks; ++b) {
      for (std::int64_t i = 0; i < count; ++i) {
        for (std::int64_t c = 0; c < cols; ++c) {
          const std::int64_t from = (constant ? 0 : b * x_rows) + x_first + i;
          want[index_of(b * out_rows + out_first + i, column + c, out_cols)] =
              values[index_of(from, c, cols)];
        }
      }
    }
    const std::vector<float> got = f.run(out, [&](ExecContext& ctx) {
      ops::copy_row_blocks(ctx, {.x = x.view(),
                                 .x_block_rows = constant ? 0 : x_rows,
                                 .x_first = x_first,
                                 .count = count,
                                 .out = out.view(),
                                 .out_block_rows = out_rows,
                                 .out_first = out_first,
                                 .out_column = column});
    });
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (std::isnan(want[i])) {
        ASSERT_TRUE(std::isnan(got[i])) << "element " << i << " was written: " << got[i];
      } else {
        ASSERT_EQ(got[i], want[i]) << "element " << i;
      }
    }
  });
}

TEST_P(RowsTest, AReplayCopiesAsManyBlocksAsAreLive) {
  const Tensor x = f.activations({8, 1}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor out = f.poisoned({8, 1});
  const Tensor live = f.ints({1}, {4});
  const auto graph = f.capture([&](ExecContext& ctx) {
    ops::copy_row_blocks(ctx, {.x = x.view(),
                               .x_block_rows = 2,
                               .count = 2,
                               .blocks = OpFixture::live(live),
                               .out = out.view(),
                               .out_block_rows = 2});
  });
  for (const std::int32_t blocks : {4, 1, 0, 3}) {
    f.write(live, std::vector<std::int32_t>{blocks});
    f.poison(out);
    f.stream().replay(*graph);
    const std::vector<float> got = f.read(out);
    for (std::int32_t row = 0; row < 2 * blocks; ++row) {
      EXPECT_EQ(got[static_cast<std::size_t>(row)], static_cast<float>(row + 1));
    }
    f.expect_untouched(got, 2 * blocks);
  }
}

TEST_P(RowsTest, CopyNamesWhatIsWrongWithItsArguments) {
  const Tensor x = f.poisoned({6, 4});
  const Tensor constant = f.floats({2, 4}, std::vector<float>(8, 1.0f));
  const Tensor out = f.poisoned({8, 6});
  const ops::CopyRowBlocksArgs good{
      .x = x.view(), .x_block_rows = 3, .count = 2, .out = out.view(), .out_block_rows = 4};
  const auto expect = [&](const std::string& message, const auto& change) {
    ops::CopyRowBlocksArgs args = good;
    change(args);
    ExecContext ctx = f.ctx();
    expect_error(ErrorCode::kInvalidArgument, message, [&] { ops::copy_row_blocks(ctx, args); });
  };
  expect("copy_row_blocks: count must be >= 1 and places >= 0, got count 0",
         [](auto& a) { a.count = 0; });
  expect("x_block_rows -1", [](auto& a) { a.x_block_rows = -1; });
  expect("x_first -1", [](auto& a) { a.x_first = -1; });
  expect("out_first -1", [](auto& a) { a.out_first = -1; });
  expect("out_column -1", [](auto& a) { a.out_column = -1; });
  expect("rows 3..5 are not in a block of 4 of 8 rows", [](auto& a) { a.out_first = 3; });
  expect("rows 0..2 are not in a block of 3 of 8 rows", [](auto& a) { a.out_block_rows = 3; });
  expect("rows 0..2 are not in a block of 0 of 8 rows", [](auto& a) { a.out_block_rows = 0; });
  expect("rows 2..4 are not in a block of 3 rows of x", [](auto& a) { a.x_first = 2; });
  expect("x must be " + std::string(to_string(f.dtype())) + " [6, 4], got int32",
         [](auto& a) { a.x.dtype = DType::kI32; });
  expect("[6, 4], got", [](auto& a) { a.x.shape = {3, 4}; });
  expect("[6, 0], got", [](auto& a) { a.x.shape = {6}; });
  expect("columns 3..7 are not in out, which has 6", [](auto& a) { a.out_column = 3; });
  expect("out must have rank 2, got shape [48]", [](auto& a) { a.out.shape = {48}; });
  expect("out must be float32, float16 or bfloat16, got int32",
         [](auto& a) { a.out.dtype = DType::kI32; });
  expect("out and x must not overlap",
         [](auto& a) { a.out.data = const_cast<std::byte*>(a.x.data); });
  expect("x must be float32 [2, 4], got float32 [1, 4]", [&](auto& a) {
    a.x = constant.view();
    a.x.shape = {1, 4};
    a.x_block_rows = 0;
  });
  expect("x must be float32 [2, 4], got int32", [&](auto& a) {
    a.x = constant.view();
    a.x.dtype = DType::kI32;
    a.x_block_rows = 0;
  });
}

TEST_P(RowsTest, AddsTheEntryOfEveryRow) {
  const Tensor table = f.floats({2, 3}, {10, 20, 30, 40, 50, 60});
  const std::vector<float> before{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const Tensor x = f.activations({5, 3}, before);  // the last period is not whole
  const std::vector<float> got = f.run_in_place(x, before, [&](ExecContext& ctx) {
    ops::add_table(ctx, {.table = table.view(), .x = x.view()});
  });
  EXPECT_EQ(got, (std::vector<float>{11, 22, 33, 44, 55, 66, 17, 28, 39, 50, 61, 72, 23, 34, 45}));
}

TEST_P(RowsTest, AddsInSinglePrecisionAndRoundsOnce) {
  for_all(20, [&](std::mt19937_64& generator) {
    const std::int64_t rows = uniform(generator, 1, 40);
    const std::int64_t cols =
        uniform(generator, 0, 1) == 0 ? uniform(generator, 1, 30) : 8 * uniform(generator, 1, 40);
    const std::int64_t period = uniform(generator, 1, 50);
    const std::vector<float> entries = normal_values(generator, period * cols);
    const std::vector<float> before = f.rounded(normal_values(generator, rows * cols));
    std::vector<float> want;
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < cols; ++c) {
        want.push_back(before[index_of(r, c, cols)] + entries[index_of(r % period, c, cols)]);
      }
    }
    const Tensor table = f.floats({period, cols}, entries);
    const Tensor x = f.activations({rows, cols}, before);
    expect_same_bits(f.run_in_place(x, before,
                                    [&](ExecContext& ctx) {
                                      ops::add_table(ctx, {.table = table.view(), .x = x.view()});
                                    }),
                     f.rounded(want));
  });
}

TEST_P(RowsTest, AReplayAddsToTheLiveRowsAlone) {
  const Tensor table = f.floats({2, 1}, {1, 2});
  const Tensor x = f.poisoned({6, 1});
  const Tensor live = f.ints({1}, {6});
  const auto graph = f.capture([&](ExecContext& ctx) {
    ops::add_table(ctx, {.table = table.view(), .rows = OpFixture::live(live), .x = x.view()});
  });
  for (const std::int32_t rows : {6, 2, 0, 3}) {
    f.write(live, std::vector<std::int32_t>{rows});
    std::vector<float> before(6, kNan);
    std::fill_n(before.begin(), rows, 10.0f);
    f.write(x, before);
    f.stream().replay(*graph);
    const std::vector<float> got = f.read(x);
    for (std::int32_t row = 0; row < rows; ++row) {
      EXPECT_EQ(got[static_cast<std::size_t>(row)], row % 2 == 0 ? 11.0f : 12.0f);
    }
    f.expect_untouched(got, rows, before);
  }
}

TEST_P(RowsTest, AddNamesWhatIsWrongWithItsArguments) {
  const Tensor table = f.floats({2, 4}, std::vector<float>(8, 1.0f));
  const Tensor x = f.poisoned({6, 4});
  const auto expect = [&](const std::string& message, const auto& change) {
    ops::AddTableArgs args{.table = table.view(), .x = x.view()};
    change(args);
    ExecContext ctx = f.ctx();
    expect_error(ErrorCode::kInvalidArgument, message, [&] { ops::add_table(ctx, args); });
  };
  expect("add_table: table must be float32 [period, 4], got shape [8]",
         [](auto& a) { a.table.shape = {8}; });
  expect("table must be float32 [period, 4], got shape [0, 4]", [](auto& a) {
    a.table.shape = {0, 4};
  });
  expect("table must be float32 [2, 4], got float32 [2, 3]", [](auto& a) {
    a.table.shape = {2, 3};
  });
  expect("table must be float32 [2, 4], got int32", [](auto& a) { a.table.dtype = DType::kI32; });
  expect("x must have rank 2, got shape [24]", [](auto& a) { a.x.shape = {24}; });
  expect("x must be float32, float16 or bfloat16, got uint8",
         [](auto& a) { a.x.dtype = DType::kU8; });
}

TEST_P(RowsTest, AveragesTheRowsOfEveryBlock) {
  const Tensor x = f.activations({6, 2}, {1, 10, 2, 20, 6, 60, -1, 0, 0, 0, 4, 3});
  const Tensor out = f.poisoned({2, 2});
  const std::vector<float> got = f.run(out, [&](ExecContext& ctx) {
    ops::mean_row_blocks(ctx, {.x = x.view(), .block_rows = 3, .out = out.view()});
  });
  EXPECT_EQ(got, (std::vector<float>{3, 30, 1, 1}));
}

TEST_P(RowsTest, AveragesInSinglePrecisionAndRoundsOnce) {
  for_all(20, [&](std::mt19937_64& generator) {
    const std::int64_t blocks = uniform(generator, 1, 20);
    const std::int64_t rows = uniform(generator, 1, 17);
    const std::int64_t cols =
        uniform(generator, 0, 1) == 0 ? uniform(generator, 1, 30) : 8 * uniform(generator, 1, 40);
    const std::vector<float> values = f.rounded(normal_values(generator, blocks * rows * cols));
    std::vector<float> want;
    for (std::int64_t b = 0; b < blocks; ++b) {
      for (std::int64_t c = 0; c < cols; ++c) {
        float sum = 0;
        for (std::int64_t i = 0; i < rows; ++i) sum += values[index_of(b * rows + i, c, cols)];
        want.push_back(sum / static_cast<float>(rows));
      }
    }
    const Tensor x = f.activations({blocks * rows, cols}, values);
    const Tensor out = f.poisoned({blocks, cols});
    expect_same_bits(f.run(out,
                           [&](ExecContext& ctx) {
                             ops::mean_row_blocks(
                                 ctx, {.x = x.view(), .block_rows = rows, .out = out.view()});
                           }),
                     f.rounded(want));
  });
}

TEST_P(RowsTest, AveragesRowsAtEqualDistancesWhereBlocksDiffer) {
  for_all(20, [&](std::mt19937_64& generator) {
    constexpr std::int64_t kRows = 24;
    const std::int64_t blocks = uniform(generator, 1, 12);
    const std::int64_t cols =
        uniform(generator, 0, 1) == 0 ? uniform(generator, 1, 30) : 8 * uniform(generator, 1, 40);
    const std::vector<float> values = f.rounded(normal_values(generator, kRows * cols));
    std::vector<std::int32_t> runs;
    std::vector<float> want;
    for (std::int64_t b = 0; b < blocks; ++b) {
      const std::int64_t rows = uniform(generator, 1, 4);
      const std::int64_t distance = uniform(generator, 1, 6);
      const std::int64_t first = uniform(generator, 0, kRows - 1 - (rows - 1) * distance);
      for (const std::int64_t v : {first, rows, distance, std::int64_t{0}}) {
        runs.push_back(static_cast<std::int32_t>(v));
      }
      for (std::int64_t c = 0; c < cols; ++c) {
        float sum = 0;
        for (std::int64_t i = 0; i < rows; ++i) {
          sum += values[index_of(first + i * distance, c, cols)];
        }
        want.push_back(sum / static_cast<float>(rows));
      }
    }
    const Tensor x = f.activations({kRows, cols}, values);
    const Tensor table = f.ints({blocks, 4}, runs);
    const Tensor out = f.poisoned({blocks, cols});
    expect_same_bits(
        f.run(out,
              [&](ExecContext& ctx) {
                ops::mean_row_blocks(
                    ctx, {.x = x.view(), .block_rows = 4, .out = out.view(), .runs = table.view()});
              }),
        f.rounded(want));
  });
}

TEST_P(RowsTest, AMeanMayBeShiftedAndScaledByColumn) {
  for (const std::int64_t cols : {3, 8, 72}) {
    const auto count = static_cast<std::size_t>(cols);
    std::vector<float> values(4 * count);
    std::vector<float> bias(count);
    std::vector<float> scale(count);
    std::vector<float> want(2 * count);
    for (std::size_t c = 0; c < count; ++c) {
      for (std::size_t row = 0; row < 4; ++row) {
        values[row * count + c] = static_cast<float>(row + c % 5);
      }
      bias[c] = 0.25f * static_cast<float>(c % 3);
      scale[c] = c % 2 == 0 ? 2.0f : -0.5f;
      want[c] = (static_cast<float>(c % 5) + 0.5f - bias[c]) * scale[c];
      want[count + c] = (static_cast<float>(c % 5) + 2.5f - bias[c]) * scale[c];
    }
    const Tensor x = f.activations({4, cols}, values);
    const Tensor shift = f.floats({cols}, bias);
    const Tensor factor = f.floats({cols}, scale);
    const Tensor out = f.poisoned({2, cols});
    const auto got = f.run(out, [&](ExecContext& ctx) {
      ops::mean_row_blocks(ctx, {.x = x.view(),
                                 .block_rows = 2,
                                 .out = out.view(),
                                 .bias = shift.view(),
                                 .scale = factor.view()});
    });
    expect_same_bits(got, f.rounded(want));
  }
}

TEST_P(RowsTest, AReplayAveragesTheLiveBlocksAlone) {
  const Tensor x = f.poisoned({8, 1});
  const Tensor out = f.poisoned({4, 1});
  const Tensor live = f.ints({1}, {4});
  const auto graph = f.capture([&](ExecContext& ctx) {
    ops::mean_row_blocks(
        ctx, {.x = x.view(), .block_rows = 2, .blocks = OpFixture::live(live), .out = out.view()});
  });
  for (const std::int32_t blocks : {4, 1, 0, 3}) {
    f.write(live, std::vector<std::int32_t>{blocks});
    std::vector<float> rows(8, kNan);
    std::iota(rows.begin(), rows.begin() + 2 * blocks, 0.0f);
    f.write(x, rows);
    f.poison(out);
    f.stream().replay(*graph);
    const std::vector<float> got = f.read(out);
    for (std::int32_t b = 0; b < blocks; ++b) {
      EXPECT_EQ(got[static_cast<std::size_t>(b)], static_cast<float>(2 * b) + 0.5f);
    }
    f.expect_untouched(got, blocks);
  }
}

TEST_P(RowsTest, MeanNamesWhatIsWrongWithItsArguments) {
  const Tensor x = f.poisoned({6, 4});
  const Tensor out = f.poisoned({2, 4});
  const auto expect = [&](const std::string& message, const auto& change) {
    ops::MeanRowBlocksArgs args{.x = x.view(), .block_rows = 3, .out = out.view()};
    change(args);
    ExecContext ctx = f.ctx();
    expect_error(ErrorCode::kInvalidArgument, message, [&] { ops::mean_row_blocks(ctx, args); });
  };
  expect("mean_row_blocks: block_rows must be >= 1, got 0", [](auto& a) { a.block_rows = 0; });
  const Tensor columns = f.floats({4}, {1, 1, 1, 1});
  expect("scale must be float32 [4]", [&](auto& a) { a.bias = columns.view(); });
  expect("bias must be float32 [4]", [&](auto& a) { a.scale = columns.view(); });
  expect("[4, 4], got", [](auto& a) { a.block_rows = 2; });
  const Tensor runs = f.ints({3, 4}, std::vector<std::int32_t>(12));
  expect("runs must be int32 [2, 4], got int32 [3, 4]", [&](auto& a) { a.runs = runs.view(); });
  expect("x must be " + std::string(to_string(f.dtype())) + " [6, 4], got int32",
         [](auto& a) { a.x.dtype = DType::kI32; });
  expect("out must have rank 2, got shape [8]", [](auto& a) { a.out.shape = {8}; });
  expect("out must be float32, float16 or bfloat16, got int32",
         [](auto& a) { a.out.dtype = DType::kI32; });
  expect("out and x must not overlap",
         [](auto& a) { a.out.data = const_cast<std::byte*>(a.x.data); });
}

TEST_P(RowsTest, EmptyInputsAreLegal) {
  const Tensor empty = make_tensor(f.device(), f.dtype(), {0, 4});
  const Tensor table = f.floats({1, 4}, {1, 2, 3, 4});
  ExecContext ctx = f.ctx();
  EXPECT_NO_THROW(ops::add_table(ctx, {.table = table.view(), .x = empty.view()}));
  const Tensor none = make_tensor(f.device(), f.dtype(), {0, 4});
  EXPECT_NO_THROW(
      ops::mean_row_blocks(ctx, {.x = none.view(), .block_rows = 2, .out = empty.view()}));
  EXPECT_NO_THROW(ops::copy_row_blocks(ctx, {.x = table.view(),
                                             .x_block_rows = 0,
                                             .count = 1,
                                             .out = empty.view(),
                                             .out_block_rows = 2}));
}

}  // namespace
}  // namespace fovea::test
