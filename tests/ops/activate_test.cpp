// Activations on their own, on every backend.
#include "fovea/tower/ops/activate.h"

#include <gtest/gtest.h>

#include <limits>

#include "support/expect_error.h"
#include "support/naive_ops.h"
#include "support/op_fixture.h"

namespace fovea::test {
namespace {

using ops::Activation;

class ActivateTest : public ::testing::TestWithParam<OpCase> {
 protected:
  OpFixture f{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Devices, ActivateTest, ::testing::ValuesIn(op_cases()), op_case_name);

TEST_P(ActivateTest, GeluOfAHandComputedRow) {
  const Tensor x = f.poisoned({1, 4});
  const auto got = f.run_in_place(x, {-1, 0, 1, 3}, [&](ExecContext& ctx) {
    ops::activate(ctx, {.activation = Activation::kGeluErf, .x = x.view()});
  });
  f.expect_close(got, {-0.1586553, 0, 0.8413447, 2.9959503}, OpClass::kPointwise);
}

TEST_P(ActivateTest, HaveTheCheckValuesOfTheReferences) {
  struct Row {
    Activation activation;
    std::vector<double> values;  // of -2, -1, -0.5, 0.5, 1 and 2
  };
  for (const Row& row :
       {Row{Activation::kGeluErf, {-.0455001, -.1586553, -.1542688, .3457312, .8413447, 1.9544999}},
        Row{Activation::kGeluTanh,
            {-.0454023, -.1588080, -.1542860, .3457140, .8411920, 1.9545977}},
        Row{Activation::kQuickGelu,
            {-.0643414, -.1542042, -.1496116, .3503884, .8457957, 1.9356586}},
        Row{Activation::kRelu2, {0, 0, 0, .25, 1, 4}}}) {
    const Tensor x = f.poisoned({1, 6});
    const auto got = f.run_in_place(x, {-2, -1, -.5, .5, 1, 2}, [&](ExecContext& ctx) {
      ops::activate(ctx, {.activation = row.activation, .x = x.view()});
    });
    f.expect_close(got, row.values, OpClass::kPointwise);
  }
}

TEST_P(ActivateTest, MatchesDoublePrecisionForAnyShapeAndActivation) {
  for (const Activation activation :
       {Activation::kNone, Activation::kGeluTanh, Activation::kGeluErf, Activation::kQuickGelu,
        Activation::kSilu, Activation::kRelu2}) {
    for (const std::int64_t cols : {1, 7, 8, 17, 64, 4096}) {
      SCOPED_TRACE(::testing::Message() << static_cast<int>(activation) << ", " << cols);
      constexpr std::int64_t kRows = 9;
      std::mt19937_64 generator(static_cast<std::uint64_t>(cols));
      std::vector<float> before = f.rounded(normal_values(generator, kRows * cols));
      std::vector<double> want;
      for (const float value : before) want.push_back(naive_activation(activation, value));
      before.resize(before.size() + static_cast<std::size_t>(2 * cols),  // rows that are not live
                    std::numeric_limits<float>::quiet_NaN());
      const Tensor live = f.ints({1}, {kRows});
      const Tensor x = f.poisoned({kRows + 2, cols});
      const auto got = f.run_in_place(x, before, [&](ExecContext& ctx) {
        ops::activate(ctx,
                      {.activation = activation, .rows = OpFixture::live(live), .x = x.view()});
      });
      f.expect_close(got, want, OpClass::kPointwise);
      f.expect_untouched(got, kRows * cols, before);
    }
  }
}

TEST_P(ActivateTest, NoRowsIsLegal) {
  const Tensor empty = make_tensor(f.device(), f.dtype(), {0, 4});
  ExecContext ctx = f.ctx();
  EXPECT_NO_THROW(ops::activate(ctx, {.activation = Activation::kSilu, .x = empty.view()}));
}

TEST_P(ActivateTest, NamesWhatIsWrongWithItsArguments) {
  const Tensor x = f.poisoned({2, 4});
  const auto expect = [&](const std::string& message, const auto& change) {
    ops::ActivateArgs args{.activation = Activation::kSilu, .x = x.view()};
    change(args);
    ExecContext ctx = f.ctx();
    expect_error(ErrorCode::kInvalidArgument, message, [&] { ops::activate(ctx, args); });
  };
  expect("activate: x must have rank 2, got shape [8]", [](auto& a) { a.x.shape = {8}; });
  expect("x must be float32, float16 or bfloat16, got int32",
         [](auto& a) { a.x.dtype = DType::kI32; });
}

}  // namespace
}  // namespace fovea::test
