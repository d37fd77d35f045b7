// Angles of the rotary embedding on every backend.
#include "fovea/tower/ops/projected_attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/check.h"
#include "support/expect_error.h"
#include "support/naive_ops.h"
#include "support/op_fixture.h"
#include "support/property.h"

namespace fovea::test {
namespace {

class RopeTest : public ::testing::TestWithParam<OpCase> {
 protected:
  OpFixture f{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Devices, RopeTest, ::testing::ValuesIn(op_cases()), op_case_name);

/// 1 / 10000^(2 j / head_dim) for every angle of a head, even j for rows, then odd j for columns.
std::vector<float> inverse_frequencies(std::int64_t head_dim) {
  std::vector<float> out;
  for (std::int64_t i = 0; i < head_dim / 2; ++i) {
    const std::int64_t j = i < head_dim / 4 ? 2 * i : 2 * i - head_dim / 2 + 1;
    const double exponent = static_cast<double>(2 * j) / static_cast<double>(head_dim);
    out.push_back(static_cast<float>(std::pow(10000.0, -exponent)));
  }
  return out;
}

std::vector<std::int32_t> random_positions(std::mt19937_64& generator, std::int64_t rows) {
  std::vector<std::int32_t> out;
  for (std::int64_t r = 0; r < rows; ++r) {
    out.push_back(static_cast<std::int32_t>(uniform(generator, 0, 300)));
    out.push_back(static_cast<std::int32_t>(uniform(generator, 0, 300)));
    out.insert(out.end(), {301, 301});
  }
  return out;
}

TEST_P(RopeTest, AnglesOfAHandComputedPatch) {
  // head_dim 8, patch (1, 2): angles 1, 0.01 of the row, 1, 0.04 of the column
  const Tensor positions = f.ints({1, 4}, {1, 2, 4, 6});
  const Tensor inv_freq = f.floats({4}, {1.0f, 0.01f, 0.5f, 0.02f});
  const Tensor cos = f.floats({1, 4}, {kNan, kNan, kNan, kNan});
  const Tensor sin = f.floats({1, 4}, {kNan, kNan, kNan, kNan});
  const auto angles = [&](ExecContext& ctx) {
    ops::rope_angles(ctx, {.positions = positions.view(),
                           .inv_freq = inv_freq.view(),
                           .cos = cos.view(),
                           .sin = sin.view()});
  };
  const auto got_cos = f.run(cos, angles);
  const auto got_sin = f.read(sin);
  const std::vector<double> want{1, 0.01, 1, 0.04};
  for (std::size_t j = 0; j < 4; ++j) {
    EXPECT_NEAR(got_cos[j], std::cos(want[j]), 2e-7);
    EXPECT_NEAR(got_sin[j], std::sin(want[j]), 2e-7);
  }
}

TEST_P(RopeTest, AnglesMatchDoublePrecisionUpToLargePositions) {
  for (const std::int64_t head_dim : {8, 64, 72, 80, 128}) {
    SCOPED_TRACE(head_dim);
    std::mt19937_64 generator(static_cast<std::uint64_t>(head_dim));
    const std::int64_t rows = 700;
    auto positions = random_positions(generator, rows);
    positions[0] = 8191;  // the last row of the tables that other engines precompute
    const auto inv_freq = inverse_frequencies(head_dim);
    const std::int64_t cols = head_dim / 2;
    const Tensor where = f.ints({rows, 4}, positions);
    const Tensor frequencies = f.floats({cols}, inv_freq);
    const std::vector<float> nan(static_cast<std::size_t>(rows * cols), kNan);
    const Tensor cos = f.floats({rows, cols}, nan);
    const Tensor sin = f.floats({rows, cols}, nan);
    const auto got_cos = f.run(cos, [&](ExecContext& ctx) {
      ops::rope_angles(ctx, {.positions = where.view(),
                             .inv_freq = frequencies.view(),
                             .cos = cos.view(),
                             .sin = sin.view()});
    });
    const auto got_sin = f.read(sin);
    const NaiveAngles want = naive_rope_angles(positions, inv_freq);
    for (std::size_t i = 0; i < want.cos.size(); ++i) {
      ASSERT_NEAR(got_cos[i], want.cos[i], 2e-7) << "element " << i;
      ASSERT_NEAR(got_sin[i], want.sin[i], 2e-7) << "element " << i;
    }
  }
}

TEST_P(RopeTest, AMatrixOfFrequenciesTurnsEveryCoordinate) {
  // Coordinates 3, 1 and 2: the first turns angle 0, the second angles 1 and 2, the third angle 2.
  const Tensor positions = f.ints({1, 4}, {3, 1, 2, 9});
  const Tensor inv_freq = f.floats({3, 4}, {0.5f, 0, 0, 0, 0, 0.25f, 1, 0, 0, 0, 0.125f, 0});
  const Tensor cos = f.floats({1, 4}, {kNan, kNan, kNan, kNan});
  const Tensor sin = f.floats({1, 4}, {kNan, kNan, kNan, kNan});
  const auto got_cos = f.run(cos, [&](ExecContext& ctx) {
    ops::rope_angles(ctx, {.positions = positions.view(),
                           .inv_freq = inv_freq.view(),
                           .cos = cos.view(),
                           .sin = sin.view()});
  });
  const auto got_sin = f.read(sin);
  const std::vector<double> want{1.5, 0.25, 1.25, 0};
  for (std::size_t j = 0; j < 4; ++j) {
    EXPECT_NEAR(got_cos[j], std::cos(want[j]), 2e-7);
    EXPECT_NEAR(got_sin[j], std::sin(want[j]), 2e-7);
  }
}

TEST_P(RopeTest, AnglesStopAtTheLiveRows) {
  const Tensor positions = f.ints({3, 4}, {1, 2, 9, 9, 3, 4, 9, 9, -1, -1, -1, -1});
  const Tensor inv_freq = f.floats({2}, {0.5f, 0.5f});
  const std::vector<float> nan(6, kPoison);
  const Tensor cos = f.floats({3, 2}, nan);
  const Tensor sin = f.floats({3, 2}, nan);
  const Tensor live = f.ints({1}, {1});
  const auto graph = f.capture([&](ExecContext& ctx) {
    ops::rope_angles(ctx, {.positions = positions.view(),
                           .inv_freq = inv_freq.view(),
                           .rows = OpFixture::live(live),
                           .cos = cos.view(),
                           .sin = sin.view()});
  });
  for (const std::int32_t rows : {2, 0, 1}) {
    f.write(live, std::vector<std::int32_t>{rows});
    f.write(cos, nan);
    f.stream().replay(*graph);
    const auto got = f.read(cos);
    for (std::size_t i = 0; i < static_cast<std::size_t>(2 * rows); ++i)
      EXPECT_NEAR(got[i], std::cos(0.5 * static_cast<double>(i + 1)), 2e-7);
    f.expect_untouched(got, 2 * rows);
  }
}

TEST_P(RopeTest, NoRowsIsLegal) {
  const Tensor angles = make_tensor(f.device(), DType::kF32, {0, 4});
  const Tensor positions = make_tensor(f.device(), DType::kI32, {0, 4});
  const Tensor inv_freq = f.floats({4}, {1, 1, 1, 1});
  ExecContext ctx = f.ctx();
  EXPECT_NO_THROW(ops::rope_angles(ctx, {.positions = positions.view(),
                                         .inv_freq = inv_freq.view(),
                                         .cos = angles.view(),
                                         .sin = angles.view()}));
}

TEST_P(RopeTest, AnglesNameWhatIsWrongWithTheirArguments) {
  const Tensor positions = f.ints({2, 4}, std::vector<std::int32_t>(8, 1));
  const Tensor inv_freq = f.floats({4}, {1, 1, 1, 1});
  const Tensor angles = f.floats({2, 4}, std::vector<float>(8, 0.0f));
  const ops::RopeAnglesArgs good{.positions = positions.view(),
                                 .inv_freq = inv_freq.view(),
                                 .cos = angles.view(),
                                 .sin = angles.view()};
  const auto expect = [&](const std::string& message, const auto& change) {
    ops::RopeAnglesArgs args = good;
    change(args);
    ExecContext ctx = f.ctx();
    expect_error(ErrorCode::kInvalidArgument, message, [&] { ops::rope_angles(ctx, args); });
  };
  expect("rope_angles: positions must be int32 [rows, 4], got shape [8]",
         [](auto& a) { a.positions.shape = {8}; });
  expect("rope_angles: positions must be int32 [4, 4], got int32 [4, 2]", [](auto& a) {
    a.positions.shape = {4, 2};
  });
  for (const std::int64_t count : {0, 3}) {
    expect(cat("inv_freq must be float32 [head_dim / 2], half of it per axis, or [1 to 4, head_dim "
               "/ 2], got shape [",
               count, "]"),
           [&](auto& a) { a.inv_freq.shape = {count}; });
  }
  expect("inv_freq must be float32 [4], got int32",
         [](auto& a) { a.inv_freq.dtype = DType::kI32; });
  expect("cos must be float32 [2, 4], got float32 [2, 2]", [](auto& a) { a.cos.shape = {2, 2}; });
  expect("sin must be float32 [2, 4], got float32 [8]", [](auto& a) { a.sin.shape = {8}; });
}

}  // namespace
}  // namespace fovea::test
