// Normalisations on every backend.
#include "fovea/tower/ops/norm.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/naive_ops.h"
#include "support/op_fixture.h"
#include "support/property.h"

namespace fovea::test {
namespace {

constexpr float kEpsilon = 1e-6f;

class NormTest : public ::testing::TestWithParam<OpCase> {
 protected:
  OpFixture f{GetParam()};

  Tensor ones(std::int64_t n) {
    return f.floats({n}, std::vector<float>(static_cast<std::size_t>(n), 1.0f));
  }
  Tensor zeros(std::int64_t n) {
    return f.floats({n}, std::vector<float>(static_cast<std::size_t>(n), 0.0f));
  }
};

INSTANTIATE_TEST_SUITE_P(Devices, NormTest, ::testing::ValuesIn(op_cases()), op_case_name);

TEST_P(NormTest, LayerNormOfHandComputedRows) {
  const Tensor x = f.activations({2, 4}, {1, 2, 3, 4, 1, 2, 4, 9});  // variances 1.25, 9.5
  const Tensor weight = f.floats({4}, {1, 1, 2, 1});
  const Tensor bias = f.floats({4}, {0, 0, 0, 1});
  const Tensor out = f.poisoned({2, 4});
  const auto got = f.run(out, [&](ExecContext& ctx) {
    ops::layer_norm(ctx, {.x = x.view(),
                          .weight = weight.view(),
                          .bias = bias.view(),
                          .epsilon = kEpsilon,
                          .out = out.view()});
  });
  f.expect_close(got, {-1.34164, -.447213, .894427, 2.34164, -.973328, -.648886, 0, 2.622214},
                 OpClass::kNorm);
}

TEST_P(NormTest, RmsNormOfAHandComputedRow) {
  const Tensor x = f.activations({1, 4}, {1, 2, 3, 4});  // mean square 7.5
  const Tensor weight = f.floats({4}, {1, 10, 1, 1});
  const Tensor out = f.poisoned({1, 4});
  const auto got = f.run(out, [&](ExecContext& ctx) {
    ops::rms_norm(ctx,
                  {.x = x.view(), .weight = weight.view(), .epsilon = kEpsilon, .out = out.view()});
  });
  const double slack = f.dtype() == DType::kF32 ? 1e-6 : 0.006;  // narrow: rounded twice
  const std::vector<double> want{0.3651484, 7.302967, 1.0954452, 1.4605935};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(got[i], want[i], slack * want[i]);
}

TEST_P(NormTest, EpsilonIsAddedToTheVariance) {
  const Tensor x = f.activations({1, 2}, {1, -1});
  const Tensor weight = ones(2);
  const Tensor bias = zeros(2);
  const Tensor out = f.poisoned({1, 2});
  ops::LayerNormArgs args{.x = x.view(),
                          .weight = weight.view(),
                          .bias = bias.view(),
                          .epsilon = 3.0f,
                          .out = out.view()};
  EXPECT_EQ(f.run(out, [&](ExecContext& ctx) { ops::layer_norm(ctx, args); })[0], 0.5f);
  EXPECT_EQ(
      f.run(out,
            [&](ExecContext& ctx) {
              ops::rms_norm(
                  ctx,
                  {.x = x.view(), .weight = weight.view(), .epsilon = 3.0f, .out = out.view()});
            })[1],
      -0.5f);
}

TEST_P(NormTest, AConstantRowGivesTheBias) {
  const Tensor x = f.activations({1, 5}, {7, 7, 7, 7, 7});
  const Tensor weight = ones(5);
  const Tensor bias = f.floats({5}, {1, 2, 3, 4, 5});
  const Tensor out = f.poisoned({1, 5});
  const auto got = f.run(out, [&](ExecContext& ctx) {
    ops::layer_norm(ctx, {.x = x.view(),
                          .weight = weight.view(),
                          .bias = bias.view(),
                          .epsilon = kEpsilon,
                          .out = out.view()});
  });
  expect_same_bits(got, {1, 2, 3, 4, 5});
}

/// Random rows in a capacity of two more, normalised in place and out of place.
struct RandomRows {
  RandomRows(OpFixture& f, std::mt19937_64& generator, Grid size)
      : shape(size),
        x(f.rounded(normal_values(generator, size.rows * size.cols))),
        weight(normal_values(generator, size.cols)),
        bias(normal_values(generator, size.cols)),
        padded(x),
        device_weight(f.floats({size.cols}, weight)),
        device_bias(f.floats({size.cols}, bias)),
        live(f.ints({1}, {static_cast<std::int32_t>(size.rows)})) {
    // Beyond the live rows: NaN where rows are only read, numbers where they are changed in place.
    const std::size_t all = x.size() + static_cast<std::size_t>(2 * size.cols);
    std::vector<float> with_nan = x;
    with_nan.resize(all, kNan);
    in = f.activations({size.rows + 2, size.cols}, with_nan);
    padded.resize(all, 7.0f);
    out = f.poisoned({size.rows + 2, size.cols});
  }
  Grid shape;
  std::vector<float> x;
  std::vector<float> weight;
  std::vector<float> bias;
  std::vector<float> padded;
  Tensor device_weight;
  Tensor device_bias;
  Tensor live;
  Tensor in;
  Tensor out;
};

/// Few and many rows of widths around those of vectors, warps and blocks.
std::vector<Grid> shapes() {
  std::vector<Grid> all;
  for (const std::int64_t cols : {1, 2, 3, 7, 8, 15, 16, 17, 63, 72, 129}) all.push_back({9, cols});
  for (const std::int64_t cols : {1152, 1157, 1280, 1283, 4608}) all.push_back({67, cols});
  for (const std::int64_t cols : {8, 72, 256, 264, 1152, 2048, 2056}) all.push_back({577, cols});
  return all;
}

TEST_P(NormTest, LayerNormMatchesDoublePrecisionForAnyShape) {
  for (const Grid& shape : shapes()) {
    SCOPED_TRACE(::testing::Message() << shape.rows << " x " << shape.cols);
    const std::int64_t cols = shape.cols;
    std::mt19937_64 generator(static_cast<std::uint64_t>(cols));
    RandomRows r(f, generator, shape);
    ops::LayerNormArgs args{.x = r.in.view(),
                            .weight = r.device_weight.view(),
                            .bias = r.device_bias.view(),
                            .epsilon = kEpsilon,
                            .rows = OpFixture::live(r.live),
                            .out = r.out.view()};
    const auto got = f.run(r.out, [&](ExecContext& ctx) { ops::layer_norm(ctx, args); });
    f.expect_close(got, naive_layer_norm(r.x, r.shape, r.weight, r.bias, kEpsilon), OpClass::kNorm);
    f.expect_untouched(got, r.shape.rows * cols);

    args.x = args.out;  // in place
    auto in_place =
        f.run_in_place(r.out, r.padded, [&](ExecContext& ctx) { ops::layer_norm(ctx, args); });
    f.expect_untouched(in_place, r.shape.rows * cols, r.padded);
    in_place.resize(r.x.size());
    expect_same_bits(in_place,
                     {got.begin(), got.begin() + static_cast<std::ptrdiff_t>(r.x.size())});
  }
}

TEST_P(NormTest, LayerNormAddsAResidualBeforeItRounds) {
  for (const Grid& shape : shapes()) {
    SCOPED_TRACE(::testing::Message() << shape.rows << " x " << shape.cols);
    std::mt19937_64 generator(static_cast<std::uint64_t>(shape.cols));
    RandomRows r(f, generator, shape);
    const auto residual = f.rounded(normal_values(generator, (shape.rows + 2) * shape.cols));
    const Tensor added = f.activations({shape.rows + 2, shape.cols}, residual);
    ops::LayerNormArgs args{.x = r.in.view(),
                            .weight = r.device_weight.view(),
                            .bias = r.device_bias.view(),
                            .epsilon = kEpsilon,
                            .rows = OpFixture::live(r.live),
                            .out = r.out.view(),
                            .residual = added.view()};
    const auto got = f.run(r.out, [&](ExecContext& ctx) { ops::layer_norm(ctx, args); });
    auto want = naive_layer_norm(r.x, r.shape, r.weight, r.bias, kEpsilon);
    for (std::size_t i = 0; i < want.size(); ++i) want[i] += static_cast<double>(residual[i]);
    f.expect_close(got, want, OpClass::kNorm);
    f.expect_untouched(got, shape.rows * shape.cols);
    args.out = added.view();  // in place
    auto in_place =
        f.run_in_place(added, residual, [&](ExecContext& ctx) { ops::layer_norm(ctx, args); });
    f.expect_untouched(in_place, shape.rows * shape.cols, residual);
    in_place.resize(r.x.size());
    expect_same_bits(in_place,
                     {got.begin(), got.begin() + static_cast<std::ptrdiff_t>(r.x.size())});
  }
}

TEST_P(NormTest, RmsNormMatchesDoublePrecisionForAnyShape) {
  for (const Grid& shape : shapes()) {
    SCOPED_TRACE(::testing::Message() << shape.rows << " x " << shape.cols);
    const std::int64_t cols = shape.cols;
    std::mt19937_64 generator(static_cast<std::uint64_t>(cols));
    RandomRows r(f, generator, shape);
    ops::RmsNormArgs args{.x = r.in.view(),
                          .weight = r.device_weight.view(),
                          .epsilon = kEpsilon,
                          .rows = OpFixture::live(r.live),
                          .out = r.out.view()};
    const auto got = f.run(r.out, [&](ExecContext& ctx) { ops::rms_norm(ctx, args); });
    f.expect_close(got, naive_rms_norm(r.x, r.shape, r.weight, kEpsilon),
                   f.dtype() == DType::kF32 ? OpClass::kNorm : OpClass::kAttention);
    f.expect_untouched(got, r.shape.rows * cols);

    args.x = args.out;
    auto in_place =
        f.run_in_place(r.out, r.padded, [&](ExecContext& ctx) { ops::rms_norm(ctx, args); });
    f.expect_untouched(in_place, r.shape.rows * cols, r.padded);
    in_place.resize(r.x.size());
    expect_same_bits(in_place,
                     {got.begin(), got.begin() + static_cast<std::ptrdiff_t>(r.x.size())});
  }
}

TEST_P(NormTest, RmsNormAddsAResidualInPlace) {
  for (const Grid& shape : shapes()) {
    SCOPED_TRACE(::testing::Message() << shape.rows << " x " << shape.cols);
    std::mt19937_64 generator(static_cast<std::uint64_t>(shape.cols));
    RandomRows r(f, generator, shape);
    std::vector<float> residual = f.rounded(normal_values(generator, shape.rows * shape.cols));
    std::vector<double> want = naive_rms_norm(r.x, r.shape, r.weight, kEpsilon);
    for (std::size_t i = 0; i < want.size(); ++i) want[i] += double{residual[i]};
    residual.resize(r.padded.size(), kNan);  // beyond the live rows
    const ops::RmsNormArgs args{.x = r.in.view(),
                                .weight = r.device_weight.view(),
                                .epsilon = kEpsilon,
                                .rows = OpFixture::live(r.live),
                                .out = r.out.view(),
                                .residual = r.out.view()};
    auto got = f.run_in_place(r.out, residual, [&](ExecContext& ctx) { ops::rms_norm(ctx, args); });
    got.resize(want.size());
    if (f.dtype() == DType::kF32) {
      f.expect_close(got, want, OpClass::kNorm);
      continue;
    }
    // The normalised value is rounded before the sum is, which may be much smaller than it.
    for (std::size_t i = 0; i < want.size(); ++i) {
      const double normalised = want[i] - double{residual[i]};
      ASSERT_NEAR(got[i], want[i],
                  1.01 * kBf16Rounding * (std::abs(want[i]) + std::abs(normalised)))
          << "element " << i;
    }
  }
}

TEST_P(NormTest, ALargeMeanDoesNotDrownTheVariance) {
  // Values 256 and 257 in turn: E[x^2] - E[x]^2 in f32 would lose 16 bits of the variance 1/4.
  std::vector<float> x(500, 256.0f);
  for (std::size_t c = 1; c < x.size(); c += 2) x[c] = 258.0f;
  const Tensor in = f.activations({1, 500}, x);
  const Tensor weight = ones(500);
  const Tensor bias = zeros(500);
  const Tensor out = f.poisoned({1, 500});
  const auto got = f.run(out, [&](ExecContext& ctx) {
    ops::layer_norm(ctx, {.x = in.view(),
                          .weight = weight.view(),
                          .bias = bias.view(),
                          .epsilon = 1e-12f,
                          .out = out.view()});
  });
  for (std::size_t c = 0; c < got.size(); ++c) ASSERT_EQ(got[c], c % 2 == 0 ? -1.0f : 1.0f);
}

TEST_P(NormTest, ARowHasTheSameBitsInAnyBatch) {
  for_all(4, [&](std::mt19937_64& generator) {
    const std::int64_t cols = uniform(generator, 1, 400);
    RandomRows batch(f, generator, {50, cols});
    const auto all = f.run(batch.out, [&](ExecContext& ctx) {
      ops::layer_norm(ctx, {.x = batch.in.view(),
                            .weight = batch.device_weight.view(),
                            .bias = batch.device_bias.view(),
                            .epsilon = kEpsilon,
                            .rows = OpFixture::live(batch.live),
                            .out = batch.out.view()});
    });
    const auto first = batch.x.begin() + 31 * cols;
    const Tensor x = f.activations({1, cols}, {first, first + cols});
    const Tensor out = f.poisoned({1, cols});
    const auto alone = f.run(out, [&](ExecContext& ctx) {
      ops::layer_norm(ctx, {.x = x.view(),
                            .weight = batch.device_weight.view(),
                            .bias = batch.device_bias.view(),
                            .epsilon = kEpsilon,
                            .out = out.view()});
    });
    expect_same_bits(alone, {all.begin() + 31 * cols, all.begin() + 32 * cols});
  });
}

TEST_P(NormTest, AReplayReadsTheLiveCountAnew) {
  std::mt19937_64 generator(3);
  RandomRows r(f, generator, {40, 33});
  const auto layer_norm = [&](ExecContext& ctx) {
    ops::layer_norm(ctx, {.x = r.in.view(),
                          .weight = r.device_weight.view(),
                          .bias = r.device_bias.view(),
                          .epsilon = kEpsilon,
                          .rows = OpFixture::live(r.live),
                          .out = r.out.view()});
  };
  const auto graph = f.capture(layer_norm);
  for (const std::int32_t rows : {40, 1, 0, 17}) {
    f.write(r.live, std::vector<std::int32_t>{rows});
    f.poison(r.out);
    f.stream().replay(*graph);
    const auto got = f.read(r.out);
    auto want = naive_layer_norm(r.x, r.shape, r.weight, r.bias, kEpsilon);
    want.resize(static_cast<std::size_t>(rows) * 33);
    f.expect_close(got, want, OpClass::kNorm);
    f.expect_untouched(got, rows * 33);
  }
}

TEST_P(NormTest, NoRowsIsLegal) {
  const Tensor empty = make_tensor(f.device(), f.dtype(), {0, 8});
  const Tensor weight = ones(8);
  ExecContext ctx = f.ctx();
  EXPECT_NO_THROW(ops::rms_norm(
      ctx, {.x = empty.view(), .weight = weight.view(), .epsilon = 1, .out = empty.view()}));
  EXPECT_NO_THROW(ops::layer_norm(ctx, {.x = empty.view(),
                                        .weight = weight.view(),
                                        .bias = weight.view(),
                                        .epsilon = 1,
                                        .out = empty.view()}));
}

TEST_P(NormTest, LayerNormNamesWhatIsWrongWithItsArguments) {
  const Tensor x = f.poisoned({2, 4});
  const Tensor weight = ones(4);
  const ops::LayerNormArgs good{.x = x.view(),
                                .weight = weight.view(),
                                .bias = weight.view(),
                                .epsilon = kEpsilon,
                                .out = x.view()};
  const auto expect = [&](const std::string& message, const auto& change) {
    ops::LayerNormArgs args = good;
    change(args);
    ExecContext ctx = f.ctx();
    expect_error(ErrorCode::kInvalidArgument, message, [&] { ops::layer_norm(ctx, args); });
  };
  expect("layer_norm: x must have rank 2, got shape [8]", [](auto& a) { a.x.shape = {8}; });
  expect("layer_norm: x must have columns, got shape [2, 0]", [](auto& a) { a.x.shape = {2, 0}; });
  expect("x must be float32, float16 or bfloat16, got uint8",
         [](auto& a) { a.x.dtype = DType::kU8; });
  expect("x of shape [2, 4] has no memory", [](auto& a) { a.x.data = nullptr; });
  expect("weight must be float32 [4], got float32 [3]", [](auto& a) { a.weight.shape = {3}; });
  expect("weight must be float32 [4], got bfloat16 [4]",
         [](auto& a) { a.weight.dtype = DType::kBF16; });
  expect("bias must be float32 [4], got float32 [2, 2]", [](auto& a) { a.bias.shape = {2, 2}; });
  expect("out must be", [](auto& a) { a.out.shape = {1, 4}; });
  expect("residual must be", [](auto& a) {
    a.residual = a.x;
    a.residual.shape = {1, 4};
  });
  expect("epsilon must be > 0, got 0", [](auto& a) { a.epsilon = 0; });
  expect("epsilon must be > 0, got nan", [](auto& a) { a.epsilon = kNan; });
}

TEST_P(NormTest, RmsNormNamesWhatIsWrongWithItsArguments) {
  const Tensor x = f.poisoned({2, 4});
  const Tensor weight = ones(4);
  const ops::RmsNormArgs good{
      .x = x.view(), .weight = weight.view(), .epsilon = kEpsilon, .out = x.view()};
  const auto expect = [&](const std::string& message, const auto& change) {
    ops::RmsNormArgs args = good;
    change(args);
    ExecContext ctx = f.ctx();
    expect_error(ErrorCode::kInvalidArgument, message, [&] { ops::rms_norm(ctx, args); });
  };
  expect("rms_norm: x must have rank 2", [](auto& a) { a.x.shape = {8}; });
  expect("weight must be float32 [4], got float32 [5]", [](auto& a) { a.weight.shape = {5}; });
  expect("out must be", [](auto& a) { a.out.dtype = DType::kI32; });
  expect("epsilon must be > 0, got -1", [](auto& a) { a.epsilon = -1; });
  expect("residual must be", [&](auto& a) {
    a.residual = x.view();
    a.residual.shape = {4, 2};
  });
}

}  // namespace
}  // namespace fovea::test
