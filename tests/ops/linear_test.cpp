// The linear layer on the CPU, for every instruction set that this machine has: the product and its
// epilogues against double precision, live rows, bit equality of rows across batches and threads,
// and the range of the activations.
#include "fovea/tower/ops/linear.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/check.h"
#include "ops/cpu/cpu_kernels.h"
#include "support/expect_error.h"
#include "support/linear_fixture.h"
#include "support/naive_ops.h"

namespace fovea::test {
namespace {

using ops::Activation;

/// Half a unit in the last place of 1.0f.
constexpr double kRounding = 0x1p-24;

class LinearTest : public ::testing::TestWithParam<CpuIsa> {};

INSTANTIATE_TEST_SUITE_P(Isas, LinearTest, ::testing::ValuesIn(isas_of_this_machine()),
                         [](const auto& suite) { return std::string(to_string(suite.param)); });

struct ProductCase {
  std::int64_t rows;
  std::int64_t in_features;
  std::int64_t out_features;
};

/// Compares every element with a sum in double precision. The bound is the classical one for a
/// chain of k roundings, k 2^-24 sum |x| |w|, plus three roundings of bias and residual;
/// activations have slopes up to 1.13 and an error of their own below 4e-7 of their argument.
void expect_product(const Matrix& x, const Stored& weight, const Stored* bias,
                    Activation activation, const Matrix* residual, const Matrix& out) {
  for (std::int64_t r = 0; r < x.rows; ++r) {
    for (std::int64_t n = 0; n < out.cols; ++n) {
      double sum = 0;
      double magnitude = 0;
      for (std::int64_t k = 0; k < x.cols; ++k) {
        const double term = static_cast<double>(x.at(r, k)) *
                            weight.rounded[static_cast<std::size_t>(n * x.cols + k)];
        sum += term;
        magnitude += std::abs(term);
      }
      if (bias != nullptr) sum += bias->rounded[static_cast<std::size_t>(n)];
      const double added = residual != nullptr ? residual->at(r, n) : 0.0;
      const double expected = naive_activation(activation, sum) + added;
      const double bound = 1.13 * kRounding * static_cast<double>(x.cols) * magnitude +
                           4e-7 * std::abs(sum) + 2 * kRounding * std::abs(expected) + 1e-37;
      ASSERT_NEAR(out.at(r, n), expected, bound) << "row " << r << " column " << n;
    }
  }
}

TEST_P(LinearTest, MatchesHandComputedRows) {
  LinearBench bench(GetParam());
  const Stored weight({1, 2, 3, -1, 0, 1}, DType::kF32, {2, 3});
  const Stored bias({10, 20}, DType::kF32, {2});
  const auto packed = ops::pack_linear(bench.device(), weight.view(), bias.view());
  const std::vector<float> x{1, 1, 1, 2, 0, -1};
  Matrix out(2, 2);
  bench.linear({.x = {reinterpret_cast<const std::byte*>(x.data()), DType::kF32, {2, 3}},
                .weight = packed,
                .out = out.view()});
  EXPECT_EQ(out.values, (std::vector<float>{16, 20, 9, 17}));
}

TEST_P(LinearTest, MatchesDoublePrecisionForAllWeightTypesAndActivations) {
  LinearBench bench(GetParam(), 2);
  const Matrix x = Matrix::random(17, 600, 1);        // 600: whole and partial blocks of k
  const Matrix residual = Matrix::random(17, 70, 4);  // 70: two whole panels and a partial one
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    const Stored weight(Matrix::random(70, 600, 2).values, dtype, {70, 600});
    const Stored bias(Matrix::random(1, 70, 3).values, dtype, {70});
    const auto packed = ops::pack_linear(bench.device(), weight.view(), bias.view());
    for (const Activation activation : kActivations) {
      SCOPED_TRACE(std::string(to_string(dtype)) + " activation " +
                   std::to_string(static_cast<int>(activation)));
      Matrix out(17, 70);
      bench.linear({.x = x.view(),
                    .weight = packed,
                    .activation = activation,
                    .residual = residual.view(),
                    .out = out.view()});
      expect_product(x, weight, &bias, activation, &residual, out);
    }
  }
}

TEST_P(LinearTest, MatchesDoublePrecisionForOddShapes) {
  LinearBench bench(GetParam(), 3);
  const ProductCase cases[] = {{1, 1, 1},    {1, 257, 33},  {2, 5, 31},      {13, 64, 32},
                               {15, 19, 96}, {29, 512, 65}, {113, 144, 432}, {127, 640, 257}};
  for (const auto& [rows, in_features, out_features] : cases) {
    SCOPED_TRACE(cat(rows, " x ", in_features, " x ", out_features));
    const Matrix x = Matrix::random(rows, in_features, 1);
    const Stored weight(Matrix::random(out_features, in_features, 2).values, DType::kBF16,
                        {out_features, in_features});
    const auto packed = ops::pack_linear(bench.device(), weight.view(), {});
    EXPECT_FALSE(packed.has_bias);
    Matrix out(rows, out_features, kNan);
    bench.linear({.x = x.view(), .weight = packed, .out = out.view()});
    expect_product(x, weight, nullptr, Activation::kNone, nullptr, out);
  }
}

TEST_P(LinearTest, ResidualMayBeTheOutput) {
  LinearBench bench(GetParam(), 4);
  const Matrix x = Matrix::random(77, 600, 1);
  const Stored weight(Matrix::random(150, 600, 2).values, DType::kBF16, {150, 600});
  const auto packed = ops::pack_linear(bench.device(), weight.view(), {});
  const Matrix residual = Matrix::random(77, 150, 3);
  Matrix apart(77, 150);
  bench.linear({.x = x.view(), .weight = packed, .residual = residual.view(), .out = apart.view()});
  Matrix in_place = residual;
  bench.linear(
      {.x = x.view(), .weight = packed, .residual = in_place.view(), .out = in_place.view()});
  EXPECT_EQ(in_place.values, apart.values);
}

TEST_P(LinearTest, LiveCountBeyondTheCapacityIsRefused) {
  LinearBench bench(GetParam());
  const auto packed =
      ops::pack_linear(bench.device(), Stored({1, 2}, DType::kF32, {1, 2}).view(), {});
  const Matrix x(3, 2);
  Matrix out(3, 1);
  for (const std::int32_t live : {4, -1}) {
    expect_error(ErrorCode::kInternal, cat("live count is ", live, ", capacity 3"), [&] {
      bench.linear({.x = x.view(), .weight = packed, .rows = {&live}, .out = out.view()});
    });
  }
}

TEST_P(LinearTest, EmptyInputIsLegal) {
  LinearBench bench(GetParam());
  const auto packed =
      ops::pack_linear(bench.device(), Stored({1, 2}, DType::kF32, {1, 2}).view(), {});
  const Matrix x(0, 2);
  Matrix out(0, 1);
  EXPECT_NO_THROW(bench.linear({.x = x.view(), .weight = packed, .out = out.view()}));
}

/// f(value) for every value, through a layer with one input that is 1 and weights that are the
/// values: the product is exact.
std::vector<float> apply(CpuIsa isa, Activation activation, const std::vector<float>& values) {
  LinearBench bench(isa);
  const auto count = static_cast<std::int64_t>(values.size());
  const auto packed =
      ops::pack_linear(bench.device(), Stored(values, DType::kF32, {count, 1}).view(), {});
  const Matrix x(1, 1, 1.0f);
  Matrix out(1, count);
  bench.linear({.x = x.view(), .weight = packed, .activation = activation, .out = out.view()});
  return out.values;
}

TEST_P(LinearTest, ActivationsAreExactToAFewRoundingsOverTheirWholeRange) {
  std::vector<float> values;
  for (int i = -200000; i <= 200000; ++i) values.push_back(static_cast<float>(i) * 1e-4f);
  for (float tiny = 1.0f; tiny > 0.0f; tiny *= 0.25f) values.insert(values.end(), {tiny, -tiny});
  for (float huge = 20.0f; huge < 1e38f; huge *= 3.0f) values.insert(values.end(), {huge, -huge});

  for (const Activation activation : kActivations) {
    if (activation == Activation::kRelu2) continue;  // grows faster than its argument: see below
    const std::vector<float> results = apply(GetParam(), activation, values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double x = values[i];
      const double y = naive_activation(activation, x);
      // Relative to the argument everywhere; relative to the value where the tail is not tiny. In
      // the tail the up to five roundings of the exponent z cost |z| 2^-24 of the value each. The
      // factor of x may be 0 where it is below the smallest normal number, and so may the result:
      // the CPU's streams take denormals for zero.
      const double tail = 6e-7 + kRounding * 5 * std::abs(std::log(std::abs(y / x) + 1e-40));
      const double bound =
          std::abs(y) < 0x1p-126
              ? std::abs(y)
              : std::min(2.5e-7 * std::abs(x), tail * std::abs(y)) + 0x1p-126 * std::abs(x);
      ASSERT_NEAR(results[i], y, bound)
          << "activation " << static_cast<int>(activation) << " at " << x;
    }
  }
}

TEST_P(LinearTest, TheSquareOfReluIsRoundedOnce) {
  std::vector<float> values{0.0f, 1e-30f, -1e-30f, 1e30f, -1e30f};
  for (int i = -2000; i <= 2000; ++i) values.push_back(static_cast<float>(i) * 0.01f);
  const std::vector<float> results = apply(GetParam(), Activation::kRelu2, values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(results[i], values[i] > 0 ? values[i] * values[i] : 0.0f) << values[i];
  }
}

TEST_P(LinearTest, ActivationsOfInfinityAndNanAreThoseOfTheFormula) {
  for (const Activation activation : kActivations) {
    const std::vector<float> y = apply(GetParam(), activation, {kInfinity, -kInfinity, kNan});
    EXPECT_EQ(y[0], kInfinity);
    if (activation == Activation::kNone) {
      EXPECT_EQ(y[1], -kInfinity);
    } else {
      EXPECT_TRUE(std::isnan(y[1])) << "-infinity times 0";
    }
    EXPECT_TRUE(std::isnan(y[2]));
  }
}

}  // namespace
}  // namespace fovea::test
