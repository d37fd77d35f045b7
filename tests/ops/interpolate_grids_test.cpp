// Grids of rows resized bilinearly, on every backend. Check values are those of
// torch.nn.functional.interpolate with corners that are not aligned.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fovea/tower/ops/patch.h"
#include "support/expect_error.h"
#include "support/op_fixture.h"
#include "support/property.h"

namespace fovea::test {
namespace {

struct Sides {
  std::int64_t height;
  std::int64_t width;

  [[nodiscard]] std::int64_t area() const { return height * width; }
};

class InterpolateGridsTest : public ::testing::TestWithParam<OpCase> {
 protected:
  /// @param line_rows rows of the result from one line to the next.
  std::vector<float> resized(const std::vector<float>& values, Sides from, Sides to,
                             std::int64_t cols, std::int64_t line_rows) {
    const std::int64_t grids = std::ssize(values) / (from.area() * cols);
    const Tensor x = f.activations({grids * from.area(), cols}, values);
    const Tensor out = f.poisoned({grids * to.height * line_rows, cols});
    return f.run(out, [&](ExecContext& ctx) {
      ops::interpolate_grids(ctx, {.x = x.view(),
                                   .height = from.height,
                                   .width = from.width,
                                   .out_height = to.height,
                                   .out_width = to.width,
                                   .out_line_rows = line_rows,
                                   .out = out.view()});
    });
  }

  OpFixture f{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Devices, InterpolateGridsTest, ::testing::ValuesIn(op_cases()),
                         op_case_name);

TEST_P(InterpolateGridsTest, ResizesToyGrids) {
  std::vector<float> ascending(16);
  std::iota(ascending.begin(), ascending.end(), 0.0f);
  f.expect_close(resized(ascending, {4, 4}, {2, 2}, 1, 2), {2.5, 4.5, 10.5, 12.5},
                 OpClass::kPointwise);
  f.expect_close(resized({0, 1, 4, 9}, {1, 4}, {1, 8}, 1, 8),
                 {0, .25, .75, 1.75, 3.25, 5.25, 7.75, 9}, OpClass::kPointwise);
}

TEST_P(InterpolateGridsTest, AGridOfTheSameSizeIsItself) {
  const std::vector<float> values{0, 1, 4, 9, 16, 25};
  EXPECT_EQ(resized(values, {2, 3}, {2, 3}, 1, 3), values);
}

TEST_P(InterpolateGridsTest, RowsBehindALineStay) {
  const std::vector<float> got = resized({1, 2, 3, 4}, {2, 2}, {2, 2}, 1, 3);
  ASSERT_EQ(got.size(), 6U);
  EXPECT_EQ(std::vector({got[0], got[1], got[3], got[4]}), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_TRUE(std::isnan(got[2]));
  EXPECT_TRUE(std::isnan(got[5]));
}

/// Rows (y, x) of a grid with weights, in double.
double interpolated(const std::vector<float>& grid, Sides from, Sides to, std::int64_t i,
                    std::int64_t j) {
  const auto place = [](std::int64_t index, std::int64_t count, std::int64_t side) {
    const double scale = static_cast<double>(side) / static_cast<double>(count);
    return std::max((static_cast<double>(index) + 0.5) * scale - 0.5, 0.0);
  };
  const double y = place(i, to.height, from.height);
  const double x = place(j, to.width, from.width);
  const auto value = [&](double row, double col) {
    const auto r = std::min(static_cast<std::int64_t>(row), from.height - 1);
    const auto c = std::min(static_cast<std::int64_t>(col), from.width - 1);
    return static_cast<double>(grid[static_cast<std::size_t>(r * from.width + c)]);
  };
  const double dy = y - std::floor(y);
  const double dx = x - std::floor(x);
  return (1 - dy) * ((1 - dx) * value(y, x) + dx * value(y, x + 1)) +
         dy * ((1 - dx) * value(y + 1, x) + dx * value(y + 1, x + 1));
}

TEST_P(InterpolateGridsTest, MatchDoublePrecisionForAnyGrids) {
  for_all(20, [&](std::mt19937_64& generator) {
    const Sides from{uniform(generator, 1, 9), uniform(generator, 1, 9)};
    const Sides to{uniform(generator, 1, 9), uniform(generator, 1, 9)};
    const std::int64_t grids = uniform(generator, 1, 3);
    const std::int64_t cols =
        uniform(generator, 0, 1) == 0 ? uniform(generator, 1, 30) : 8 * uniform(generator, 1, 20);
    const std::vector<float> values =
        f.rounded(normal_values(generator, grids * from.area() * cols));
    const std::vector<float> got = resized(values, from, to, cols, to.width);
    std::vector<double> want(got.size());
    for (std::int64_t g = 0; g < grids; ++g) {
      for (std::int64_t c = 0; c < cols; ++c) {
        std::vector<float> grid;
        for (std::int64_t r = 0; r < from.area(); ++r) {
          grid.push_back(values[static_cast<std::size_t>((g * from.area() + r) * cols + c)]);
        }
        for (std::int64_t r = 0; r < to.area(); ++r) {
          want[static_cast<std::size_t>((g * to.area() + r) * cols + c)] =
              interpolated(grid, from, to, r / to.width, r % to.width);
        }
      }
    }
    f.expect_close(got, want, OpClass::kNorm);
  });
}

TEST_P(InterpolateGridsTest, NamesWhatIsWrongWithItsArguments) {
  const Tensor x = f.poisoned({12, 4});
  const Tensor out = f.poisoned({8, 4});
  const auto expect = [&](const std::string& message, const auto& change) {
    ops::InterpolateGridsArgs args{.x = x.view(),
                                   .height = 3,
                                   .width = 2,
                                   .out_height = 2,
                                   .out_width = 2,
                                   .out_line_rows = 2,
                                   .out = out.view()};
    change(args);
    ExecContext ctx = f.ctx();
    expect_error(ErrorCode::kInvalidArgument, message, [&] { ops::interpolate_grids(ctx, args); });
  };
  expect("grids must have sides >= 1, got 3x0 and 2x2", [](auto& a) { a.width = 0; });
  expect("grids must have sides >= 1, got 3x2 and 0x2", [](auto& a) { a.out_height = 0; });
  expect("out_line_rows must be >= 2, got 1", [](auto& a) { a.out_line_rows = 1; });
  expect("8 rows of out are not whole grids of 6", [](auto& a) { a.out_line_rows = 3; });
  expect("x must be " + std::string(to_string(f.dtype())) + " [8, 4], got",
         [](auto& a) { a.height = 2; });
  expect("out and x must not overlap",
         [](auto& a) { a.out.data = const_cast<std::byte*>(a.x.data); });
}

}  // namespace
}  // namespace fovea::test
