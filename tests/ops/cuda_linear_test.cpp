// The linear layer on a GPU: every epilogue, odd sizes, strided outputs, against double precision;
// replay equals eager. Skipped where there is no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>

#include "fovea/tower/ops/linear.h"
#include "support/naive_ops.h"
#include "support/op_fixture.h"

namespace fovea::test {
namespace {

using ops::Activation;

/// Upper bound of the slope of an activation about x, which passes the rounding of its argument on.
double max_slope(Activation activation, double x) {
  constexpr double kSteepestOfTheBounded = 1.13;  // of GELU
  return activation == Activation::kRelu2 ? 2 * std::abs(x) : kSteepestOfTheBounded;
}

std::optional<OpCase> gpu_case() {
  for (const OpCase& op_case : op_cases())
    if (op_case.device.name == "cuda") return op_case;
  return std::nullopt;
}

struct LinearCase {
  std::int64_t rows;
  std::int64_t in_features;
  std::int64_t out_features;
  bool bias = true;
  Activation activation = Activation::kNone;
  bool residual = false;
  bool in_place = false;  ///< the residual is the output
  std::int64_t column = 0;
  std::int64_t extra_columns = 0;  ///< of out beyond the product
};

void PrintTo(const LinearCase& c, std::ostream* out) {
  *out << c.rows << " x " << c.in_features << " to " << c.out_features << " activation "
       << static_cast<int>(c.activation) << " residual " << c.residual << " in place " << c.in_place
       << " column " << c.column;
}

class CudaLinearTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!gpu_case()) GTEST_SKIP() << "no GPU";
    f.emplace(*gpu_case());
  }

  void check(const LinearCase& c) {
    SCOPED_TRACE(::testing::PrintToString(c));
    std::mt19937_64 generator(static_cast<std::uint64_t>(c.rows + c.in_features));
    const auto x = f->rounded(normal_values(generator, c.rows * c.in_features));
    auto weight = normal_values(generator, c.out_features * c.in_features);
    for (float& w : weight) w /= std::sqrt(static_cast<float>(c.in_features));
    weight = f->rounded(weight);
    const auto bias = f->rounded(normal_values(generator, c.out_features));
    const auto residual = f->rounded(normal_values(generator, c.rows * c.out_features));

    const ops::PackedLinear packed =
        ops::pack_linear(f->device(), view_of(weight, {c.out_features, c.in_features}),
                         c.bias ? view_of(bias, {c.out_features}) : ConstTensorView{});
    const std::int64_t width = c.column + c.out_features + c.extra_columns;
    const Tensor in = f->activations({c.rows, c.in_features}, x);
    const Tensor added = f->activations({c.rows, c.out_features}, residual);
    const Tensor out = f->poisoned({c.rows, width});
    const auto got = f->run(
        out,
        [&] {
          if (c.in_place) {
            f->write(out, residual);
          } else {
            f->poison(out);
          }
        },
        [&](ExecContext& ctx) {
          ops::linear(ctx, {.x = in.view(),
                            .weight = packed,
                            .activation = c.activation,
                            .residual = !c.residual  ? ConstTensorView{}
                                        : c.in_place ? ConstTensorView(out.view())
                                                     : ConstTensorView(added.view()),
                            .out = out.view(),
                            .out_column = c.column});
        });
    for (std::int64_t r = 0; r < c.rows; ++r) {
      for (std::int64_t n = 0; n < width; ++n) {
        const float value = got[static_cast<std::size_t>(r * width + n)];
        const std::int64_t col = n - c.column;
        if (col < 0 || col >= c.out_features) {
          ASSERT_TRUE(std::isnan(value)) << "column " << n << " of row " << r << " was written";
          continue;
        }
        double product = 0.0;
        for (std::int64_t k = 0; k < c.in_features; ++k) {
          product += double{x[static_cast<std::size_t>(r * c.in_features + k)]} *
                     weight[static_cast<std::size_t>(col * c.in_features + k)];
        }
        const double sum = product + (c.bias ? bias[static_cast<std::size_t>(col)] : 0.0);
        double want = naive_activation(c.activation, sum);
        // Some of the library's kernels round the product, and its sum with the bias or with the
        // residual, before they go on; the argument of an activation without an epilogue is
        // rounded.
        double argument = max_slope(c.activation, sum) * (std::abs(product) + std::abs(sum));
        if (c.residual) {
          const double shift = residual[static_cast<std::size_t>(r * c.out_features + col)];
          want += shift;
          argument += std::abs(product + shift);
        }
        // 1e-3: the library's tanh is a fast one, and sums of thousands of products.
        ASSERT_NEAR(value, want, 1.01 * kBf16Rounding * (std::abs(want) + argument) + 1e-3)
            << "row " << r << " column " << col;
      }
    }
  }

  std::optional<OpFixture> f;
};

TEST_F(CudaLinearTest, MatchesDoublePrecisionForAnySize) {
  for (const std::int64_t rows : {1, 7, 64, 65, 129, 300})
    check({.rows = rows, .in_features = 144, .out_features = 96});
  check({.rows = 100, .in_features = 1152, .out_features = 200});
  check({.rows = 33, .in_features = 588, .out_features = 40});  // 8-byte rows
  check({.rows = 33, .in_features = 3420, .out_features = 24});
  check({.rows = 20, .in_features = 75, .out_features = 31});  // nothing aligned
  check({.rows = 5, .in_features = 1, .out_features = 1});
}

TEST_F(CudaLinearTest, WorksWithoutBias) {
  check({.rows = 50, .in_features = 64, .out_features = 72, .bias = false});
  check({.rows = 50,
         .in_features = 64,
         .out_features = 72,
         .bias = false,
         .activation = Activation::kGeluTanh});
}

TEST_F(CudaLinearTest, AppliesEveryActivation) {
  for (const Activation activation :
       {Activation::kGeluTanh, Activation::kGeluErf, Activation::kQuickGelu, Activation::kSilu,
        Activation::kRelu2}) {
    check({.rows = 70, .in_features = 80, .out_features = 304, .activation = activation});
    check({.rows = 9, .in_features = 30, .out_features = 13, .activation = activation});
  }
}

TEST_F(CudaLinearTest, AddsAResidual) {
  for (const bool in_place : {false, true}) {
    check({.rows = 90,
           .in_features = 128,
           .out_features = 144,
           .residual = true,
           .in_place = in_place});
    check({.rows = 90,
           .in_features = 128,
           .out_features = 144,
           .activation = Activation::kGeluTanh,
           .residual = true,
           .in_place = in_place});
    check({.rows = 90,
           .in_features = 16,
           .out_features = 17,
           .activation = Activation::kSilu,
           .residual = true,
           .in_place = in_place});
  }
}

TEST_F(CudaLinearTest, AddsAnActivatedProductInPlaceInPieces) {
  // More than the scratch of a stream holds: 32 MiB are 4096 rows of 4096 columns.
  check({.rows = 4100,
         .in_features = 1,
         .out_features = 4096,
         .bias = false,
         .activation = Activation::kGeluErf,
         .residual = true,
         .in_place = true});
}

TEST_F(CudaLinearTest, WritesIntoColumnsOfAWiderTensor) {
  for (const std::int64_t column : {64, 8, 3}) {
    check({.rows = 40, .in_features = 64, .out_features = 64, .column = column});
    check({.rows = 40,
           .in_features = 64,
           .out_features = 64,
           .activation = Activation::kGeluErf,
           .column = column,
           .extra_columns = 5});
    check({.rows = 40,
           .in_features = 64,
           .out_features = 64,
           .residual = true,
           .column = column,
           .extra_columns = 8});
  }
}

TEST_F(CudaLinearTest, ARecordingMadeWithoutAnEagerRunIsValid) {
  // Inside a capture nothing can be measured: the library's first proposal is recorded.
  std::mt19937_64 generator(5);
  const auto x = f->rounded(normal_values(generator, 40 * 72));
  const auto weight = f->rounded(normal_values(generator, 88 * 72));
  const ops::PackedLinear packed = ops::pack_linear(f->device(), view_of(weight, {88, 72}), {});
  const Tensor in = f->activations({40, 72}, x);
  const Tensor out = f->poisoned({40, 88});
  const auto graph = f->capture([&](ExecContext& ctx) {
    ops::linear(ctx, {.x = in.view(), .weight = packed, .out = out.view()});
  });
  f->stream().replay(*graph);
  const auto got = f->read(out);
  double want = 0;
  for (std::size_t k = 0; k < 72; ++k) want += double{x[k]} * weight[k];
  EXPECT_NEAR(got[0], want, kBf16Rounding * std::abs(want) + 1e-3);
  EXPECT_TRUE(std::ranges::none_of(got, [](float value) { return std::isnan(value); }));
}

}  // namespace
}  // namespace fovea::test
