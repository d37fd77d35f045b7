// Every complaint of pack_linear and linear.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "support/expect_error.h"
#include "support/linear_fixture.h"

namespace fovea::test {
namespace {

void expect_invalid(const std::function<void()>& call, const std::string& part_of_message) {
  expect_error(ErrorCode::kInvalidArgument, part_of_message, call);
}

class LinearErrors : public ::testing::Test {
 protected:
  LinearBench bench_{CpuIsa::kPortable};
  Stored weight_{{1, 2, 3, 4, 5, 6}, DType::kF32, {2, 3}};
  ops::PackedLinear packed_ = ops::pack_linear(bench_.device(), weight_.view(), {});
  Matrix x_{4, 3};
  Matrix out_{4, 2};

  static ConstTensorView with(ConstTensorView tensor, DType dtype, Shape shape) {
    return {tensor.data, dtype, shape};
  }
};

TEST_F(LinearErrors, PackRefusesAWeightThatIsNoMatrix) {
  expect_invalid(
      [&] { (void)ops::pack_linear(bench_.device(), with(weight_.view(), DType::kF32, {6}), {}); },
      "weight must have rank 2, got shape [6]");
}

TEST_F(LinearErrors, PackRefusesAnEmptyWeight) {
  expect_invalid(
      [&] {
        (void)ops::pack_linear(bench_.device(), with(weight_.view(), DType::kF32, {0, 3}), {});
      },
      "weight must have out_features, got shape [0, 3]");
}

TEST_F(LinearErrors, PackRefusesAnIntegerWeight) {
  expect_invalid(
      [&] {
        (void)ops::pack_linear(bench_.device(), with(weight_.view(), DType::kI32, {2, 3}), {});
      },
      "int32");
}

TEST_F(LinearErrors, PackRefusesABiasOfAnotherLength) {
  const Stored bias({1, 2, 3}, DType::kF32, {3});
  expect_invalid([&] { (void)ops::pack_linear(bench_.device(), weight_.view(), bias.view()); },
                 "bias must be [2], got [3]");
}

TEST_F(LinearErrors, PackRefusesAnIntegerBias) {
  const Stored bias({1, 2}, DType::kF32, {2});
  expect_invalid(
      [&] {
        (void)ops::pack_linear(bench_.device(), weight_.view(),
                               with(bias.view(), DType::kI32, {2}));
      },
      "int32");
}

TEST_F(LinearErrors, RefusesInputsOfAnotherWidth) {
  Matrix x(4, 5);
  expect_invalid([&] { bench_.linear({.x = x.view(), .weight = packed_, .out = out_.view()}); },
                 "x must be [rows, 3], got [4, 5]");
}

TEST_F(LinearErrors, RefusesIntegerInputs) {
  expect_invalid(
      [&] {
        bench_.linear(
            {.x = with(x_.view(), DType::kI32, {4, 3}), .weight = packed_, .out = out_.view()});
      },
      "int32");
}

TEST_F(LinearErrors, RefusesAnOutputOfAnotherType) {
  TensorView out = out_.view();
  out.dtype = DType::kBF16;
  expect_invalid([&] { bench_.linear({.x = x_.view(), .weight = packed_, .out = out}); },
                 "out must be float32");
}

TEST_F(LinearErrors, RefusesAnOutputWithOtherRows) {
  Matrix out(5, 2);
  expect_invalid([&] { bench_.linear({.x = x_.view(), .weight = packed_, .out = out.view()}); },
                 "out must be [4, columns], got [5, 2]");
}

TEST_F(LinearErrors, RefusesColumnsBeyondTheOutput) {
  Matrix out(4, 4);
  for (const std::int64_t column : {3, -1}) {
    expect_invalid(
        [&] {
          bench_.linear(
              {.x = x_.view(), .weight = packed_, .out = out.view(), .out_column = column});
        },
        "do not fit out [4, 4]");
  }
}

TEST_F(LinearErrors, RefusesAnOutputThatOverlapsTheInput) {
  expect_invalid(
      [&] { bench_.linear({.x = x_.view(), .weight = packed_, .out = x_.first_rows(4)}); },
      "out must not overlap x");
}

TEST_F(LinearErrors, RefusesAResidualOfAnotherShape) {
  Matrix residual(4, 3);
  expect_invalid(
      [&] {
        bench_.linear(
            {.x = x_.view(), .weight = packed_, .residual = residual.view(), .out = out_.view()});
      },
      "residual must be float32 [4, 2], got float32 [4, 3]");
}

TEST_F(LinearErrors, RefusesAResidualOfAnotherType) {
  Matrix residual(4, 2);
  expect_invalid(
      [&] {
        bench_.linear({.x = x_.view(),
                       .weight = packed_,
                       .residual = with(residual.view(), DType::kF16, {4, 2}),
                       .out = out_.view()});
      },
      "residual must be float32 [4, 2], got float16");
}

TEST_F(LinearErrors, RefusesAResidualThatOverlapsTheOutputPartly) {
  Matrix memory(5, 2);
  TensorView shifted = memory.first_rows(4);
  shifted.data += 2 * sizeof(float);
  expect_invalid(
      [&] {
        bench_.linear(
            {.x = x_.view(), .weight = packed_, .residual = memory.first_rows(4), .out = shifted});
      },
      "residual must be out itself");
}

}  // namespace
}  // namespace fovea::test
