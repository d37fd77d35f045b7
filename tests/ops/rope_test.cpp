// Rotary embedding on every backend. Check values: Qwen and GLM specification, section 4.2.
#include "ops/rope.h"

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

class RopeTest : public ::testing::TestWithParam<OpCase> {
 protected:
  OpFixture f{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Devices, RopeTest, ::testing::ValuesIn(op_cases()), op_case_name);

/// 1 / 10000^(2 j / dim) for dim = head_dim / 2
std::vector<float> inverse_frequencies(std::int64_t head_dim) {
  std::vector<float> out;
  for (std::int64_t j = 0; j < head_dim / 4; ++j) {
    const double exponent = static_cast<double>(4 * j) / static_cast<double>(head_dim);
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
  // head_dim 8, patch (1, 2): angles 1, 0.01, 2, 0.02
  const Tensor positions = f.ints({1, 4}, {1, 2, 4, 6});
  const Tensor inv_freq = f.floats({2}, {1.0f, 0.01f});
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
  const std::vector<double> want{1, 0.01, 2, 0.02};
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
    const Tensor frequencies = f.floats({head_dim / 4}, inv_freq);
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

TEST_P(RopeTest, AnglesStopAtTheLiveRows) {
  const Tensor positions = f.ints({3, 4}, {1, 2, 9, 9, 3, 4, 9, 9, -1, -1, -1, -1});
  const Tensor inv_freq = f.floats({1}, {0.5f});
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

TEST_P(RopeTest, RotatesAHandComputedHead) {
  std::vector<float> qkv;
  for (int part = 0; part < 3; ++part) {
    for (int i = 1; i <= 8; ++i) qkv.push_back(static_cast<float>(i));
  }
  const std::vector<double> angles{1, 0.01, 2, 0.02};
  std::vector<float> cos, sin;
  for (const double angle : angles) {
    cos.push_back(static_cast<float>(std::cos(angle)));
    sin.push_back(static_cast<float>(std::sin(angle)));
  }
  const Tensor x = f.activations({1, 24}, qkv);
  const Tensor device_cos = f.floats({1, 4}, cos);
  const Tensor device_sin = f.floats({1, 4}, sin);
  const auto got = f.run_in_place(x, qkv, [&](ExecContext& ctx) {
    ops::rope(ctx, {.qkv = x.view(),
                    .cos = device_cos.view(),
                    .sin = device_sin.view(),
                    .num_heads = 1,
                    .head_dim = 8});
  });
  const std::vector<double> head{-3.667053, 1.939901, -7.613522, 3.839211,
                                 3.542983,  6.0197,   -0.185136, 8.078395};
  const double slack = f.dtype() == DType::kF32 ? 1e-6 : 0.03;
  for (std::size_t j = 0; j < 8; ++j) {
    EXPECT_NEAR(got[j], head[j], slack) << "q " << j;
    EXPECT_NEAR(got[8 + j], head[j], slack) << "k " << j;
    EXPECT_EQ(got[16 + j], static_cast<float>(j + 1)) << "v " << j;
  }
}

TEST_P(RopeTest, MatchesDoublePrecisionAndLeavesTheRestAlone) {
  struct Case {
    std::int64_t num_heads, head_dim;
  };
  for (const auto [num_heads, head_dim] : {Case{1, 2}, Case{3, 6}, Case{2, 8}, Case{2, 72},
                                           Case{16, 72}, Case{5, 80}, Case{3, 88}, Case{2, 128}}) {
    SCOPED_TRACE(head_dim);
    std::mt19937_64 generator(static_cast<std::uint64_t>(head_dim));
    const std::int64_t rows = 37;
    const std::int64_t width = num_heads * head_dim;
    const std::int64_t half = head_dim / 2;
    std::vector<float> cos, sin;
    for (const float angle : normal_values(generator, rows * half)) {
      cos.push_back(std::cos(angle));
      sin.push_back(std::sin(angle));
    }
    const auto qkv = f.rounded(normal_values(generator, rows * 3 * width));
    std::vector<float> before = qkv;  // two rows beyond the live ones
    before.resize(static_cast<std::size_t>((rows + 2) * 3 * width), 7.0f);
    const auto want = naive_rope(qkv, cos, sin, num_heads, head_dim);
    cos.resize(static_cast<std::size_t>((rows + 2) * half), kNan);
    sin.resize(cos.size(), kNan);
    const Tensor x = f.activations({rows + 2, 3 * width}, before);
    const Tensor device_cos = f.floats({rows + 2, half}, cos);
    const Tensor device_sin = f.floats({rows + 2, half}, sin);
    const Tensor live = f.ints({1}, {static_cast<std::int32_t>(rows)});
    const auto got = f.run_in_place(
        x, before, [&, num_heads = num_heads, head_dim = head_dim](ExecContext& ctx) {
          ops::rope(ctx, {.qkv = x.view(),
                          .cos = device_cos.view(),
                          .sin = device_sin.view(),
                          .num_heads = num_heads,
                          .head_dim = head_dim,
                          .rows = OpFixture::live(live)});
        });
    f.expect_close(got, want, OpClass::kPointwise);
    f.expect_untouched(got, rows * 3 * width, before);
    for (std::int64_t r = 0; r < rows; ++r) {
      const auto v = static_cast<std::size_t>(r * 3 * width + 2 * width);
      for (std::size_t i = v; i < v + static_cast<std::size_t>(width); ++i)
        ASSERT_EQ(got[i], qkv[i]);
    }
  }
}

TEST_P(RopeTest, NoRowsIsLegal) {
  const Tensor qkv = make_tensor(f.device(), f.dtype(), {0, 24});
  const Tensor angles = make_tensor(f.device(), DType::kF32, {0, 4});
  const Tensor positions = make_tensor(f.device(), DType::kI32, {0, 4});
  const Tensor inv_freq = f.floats({2}, {1, 1});
  ExecContext ctx = f.ctx();
  EXPECT_NO_THROW(ops::rope(ctx, {.qkv = qkv.view(),
                                  .cos = angles.view(),
                                  .sin = angles.view(),
                                  .num_heads = 1,
                                  .head_dim = 8}));
  EXPECT_NO_THROW(ops::rope_angles(ctx, {.positions = positions.view(),
                                         .inv_freq = inv_freq.view(),
                                         .cos = angles.view(),
                                         .sin = angles.view()}));
}

TEST_P(RopeTest, NamesWhatIsWrongWithItsArguments) {
  const Tensor qkv = f.poisoned({2, 24});
  const Tensor cos = f.floats({2, 4}, std::vector<float>(8, 0.0f));
  const ops::RopeArgs good{
      .qkv = qkv.view(), .cos = cos.view(), .sin = cos.view(), .num_heads = 1, .head_dim = 8};
  const auto expect = [&](const std::string& message, const auto& change) {
    ops::RopeArgs args = good;
    change(args);
    ExecContext ctx = f.ctx();
    expect_error(ErrorCode::kInvalidArgument, message, [&] { ops::rope(ctx, args); });
  };
  expect("rope: num_heads must be > 0, got -1", [](auto& a) { a.num_heads = -1; });
  expect("rope: head_dim must be positive and even, got 7", [](auto& a) { a.head_dim = 7; });
  expect("rope: qkv must have rank 2", [](auto& a) { a.qkv.shape = {48}; });
  expect("[2, 24], got", [](auto& a) { a.qkv.shape = {2, 16}; });
  expect("rope: cos must be float32 [2, 4], got float32 [2, 8]", [](auto& a) {
    a.cos.shape = {2, 8};
  });
  expect("rope: sin must be float32 [2, 4], got int32 [2, 4]",
         [](auto& a) { a.sin.dtype = DType::kI32; });
}

TEST_P(RopeTest, AnglesNameWhatIsWrongWithTheirArguments) {
  const Tensor positions = f.ints({2, 4}, std::vector<std::int32_t>(8, 1));
  const Tensor inv_freq = f.floats({2}, {1, 1});
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
  expect("inv_freq must be float32 [head_dim / 4], got shape [0]",
         [](auto& a) { a.inv_freq.shape = {0}; });
  expect("inv_freq must be float32 [2], got int32",
         [](auto& a) { a.inv_freq.dtype = DType::kI32; });
  expect("cos must be float32 [2, 4], got float32 [2, 2]", [](auto& a) { a.cos.shape = {2, 2}; });
  expect("sin must be float32 [2, 4], got float32 [8]", [](auto& a) { a.sin.shape = {8}; });
}

}  // namespace
}  // namespace fovea::test
