// The gated activation on every backend.
#include "fovea/tower/ops/activate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/expect_error.h"
#include "support/naive_ops.h"
#include "support/op_fixture.h"

namespace fovea::test {
namespace {

using ops::Activation;

constexpr float kInf = std::numeric_limits<float>::infinity();

class GatedTest : public ::testing::TestWithParam<OpCase> {
 protected:
  OpFixture f{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Devices, GatedTest, ::testing::ValuesIn(op_cases()), op_case_name);

TEST_P(GatedTest, TheFirstHalfOfARowGatesTheSecond) {
  const Tensor x = f.activations({2, 4}, {1, -1, 10, 20, 0, 30, 7, 2});
  const Tensor out = f.poisoned({2, 2});
  const auto got = f.run(out, [&](ExecContext& ctx) {
    ops::gated(ctx, {.x = x.view(), .activation = Activation::kSilu, .out = out.view()});
  });
  f.expect_close(got, {7.3105858, -5.3788284, 0, 60}, OpClass::kPointwise);
}

TEST_P(GatedTest, ALimitHoldsForTheGateFromAboveAndForTheRestOnBothSides) {
  const Tensor x = f.activations({3, 4}, {3, -3, 9, -9, 1, -1, 1, -1, kInf, 2, 2, -kInf});
  const Tensor out = f.poisoned({3, 2});
  const auto got = f.run(out, [&](ExecContext& ctx) {
    ops::gated(ctx,
               {.x = x.view(), .activation = Activation::kNone, .limit = 2, .out = out.view()});
  });
  f.expect_close(got, {4, 6, 1, 1, 4, -4}, OpClass::kPointwise);
}

TEST_P(GatedTest, WithoutALimitNumbersStayWhatTheyAre) {
  const Tensor x = f.activations({2, 2}, {kInf, 1, kNan, 1});
  const Tensor out = f.poisoned({2, 1});
  const auto got = f.run(out, [&](ExecContext& ctx) {
    ops::gated(ctx, {.x = x.view(), .activation = Activation::kNone, .out = out.view()});
  });
  EXPECT_EQ(got[0], kInf);
  EXPECT_TRUE(std::isnan(got[1]));
}

TEST_P(GatedTest, MatchesDoublePrecisionForAnyShapeAndActivation) {
  for (const Activation activation :
       {Activation::kNone, Activation::kGeluTanh, Activation::kGeluErf, Activation::kQuickGelu,
        Activation::kSilu, Activation::kRelu2}) {
    for (const std::int64_t cols : {1, 7, 8, 17, 64, 72, 3420, 3424}) {
      SCOPED_TRACE(::testing::Message() << static_cast<int>(activation) << ", " << cols);
      constexpr std::int64_t kRows = 9;
      std::mt19937_64 generator(static_cast<std::uint64_t>(cols));
      std::vector<float> x = f.rounded(normal_values(generator, kRows * 2 * cols));
      std::vector<double> want;
      for (std::int64_t r = 0; r < kRows; ++r) {
        for (std::int64_t c = 0; c < cols; ++c) {
          const auto at = static_cast<std::size_t>(r * 2 * cols + c);
          want.push_back(naive_activation(activation, x[at]) *
                         double{x[at + static_cast<std::size_t>(cols)]});
        }
      }
      x.resize(x.size() + static_cast<std::size_t>(2 * 2 * cols), kNan);  // two rows are not live
      const Tensor in = f.activations({kRows + 2, 2 * cols}, x);
      const Tensor live = f.ints({1}, {kRows});
      const Tensor out = f.poisoned({kRows + 2, cols});
      const auto got = f.run(out, [&](ExecContext& ctx) {
        ops::gated(ctx, {.x = in.view(),
                         .activation = activation,
                         .rows = OpFixture::live(live),
                         .out = out.view()});
      });
      f.expect_close(got, want, OpClass::kPointwise);
      f.expect_untouched(got, kRows * cols);
    }
  }
}

TEST_P(GatedTest, AReplayReadsTheLiveCountAnew) {
  const Tensor x = f.activations({4, 2}, {1, 1, 1, 2, 1, 3, 1, 4});
  const Tensor live = f.ints({1}, {4});
  const Tensor out = f.poisoned({4, 1});
  const auto graph = f.capture([&](ExecContext& ctx) {
    ops::gated(ctx, {.x = x.view(),
                     .activation = Activation::kNone,
                     .rows = OpFixture::live(live),
                     .out = out.view()});
  });
  for (const std::int32_t rows : {4, 1, 0, 3}) {
    f.write(live, std::vector<std::int32_t>{rows});
    f.poison(out);
    f.stream().replay(*graph);
    const auto got = f.read(out);
    for (std::int32_t row = 0; row < rows; ++row) {
      EXPECT_EQ(got[static_cast<std::size_t>(row)], static_cast<float>(row + 1));
    }
    f.expect_untouched(got, rows);
  }
}

TEST_P(GatedTest, NoRowsIsLegal) {
  const Tensor wide = make_tensor(f.device(), f.dtype(), {0, 8});
  const Tensor empty = make_tensor(f.device(), f.dtype(), {0, 4});
  ExecContext ctx = f.ctx();
  EXPECT_NO_THROW(ops::gated(ctx, {.x = wide.view(), .out = empty.view()}));
}

TEST_P(GatedTest, NamesWhatIsWrongWithItsArguments) {
  const Tensor x = f.poisoned({2, 8});
  const Tensor out = f.poisoned({2, 4});
  const auto expect = [&](const std::string& message, const auto& change) {
    ops::GatedArgs args{.x = x.view(), .out = out.view()};
    change(args);
    ExecContext ctx = f.ctx();
    expect_error(ErrorCode::kInvalidArgument, message, [&] { ops::gated(ctx, args); });
  };
  const std::string dtype(to_string(f.dtype()));
  expect("gated: x must have rank 2, got shape [16]", [](auto& a) { a.x.shape = {16}; });
  expect("gated: x must have an even number of columns, got shape [2, 7]", [](auto& a) {
    a.x.shape = {2, 7};
  });
  expect("x must be float32, float16 or bfloat16, got int32",
         [](auto& a) { a.x.dtype = DType::kI32; });
  expect("gated: out must be " + dtype + " [2, 4], got " + dtype + " [8]",
         [](auto& a) { a.out.shape = {8}; });
  expect("out must be " + dtype + " [2, 4], got int32", [](auto& a) { a.out.dtype = DType::kI32; });
  expect("gated: limit must be > 0, got 0", [](auto& a) { a.limit = 0; });
  expect("out and x must not overlap",
         [](auto& a) { a.out.data = const_cast<std::byte*>(a.x.data); });
}

}  // namespace
}  // namespace fovea::test
