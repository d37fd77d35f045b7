// Limits of columns on every backend.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "fovea/tower/ops/activate.h"
#include "support/expect_error.h"
#include "support/op_fixture.h"
#include "support/property.h"

namespace fovea::test {
namespace {

class ClampTest : public ::testing::TestWithParam<OpCase> {
 protected:
  OpFixture f{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Devices, ClampTest, ::testing::ValuesIn(op_cases()), op_case_name);

TEST_P(ClampTest, EveryColumnHasBoundsOfItsOwn) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Tensor x = f.activations({2, 4}, {-3, 3, 7, kNan, 0.5f, -9, -kInfinity, 1});
  const Tensor least = f.floats({4}, {-2, -1, -kInfinity, 0});
  const Tensor most = f.floats({4}, {2, 1, kInfinity, 2});
  const Tensor out = f.poisoned({2, 4});
  const auto got = f.run(out, [&](ExecContext& ctx) {
    ops::clamp(ctx, {.x = x.view(), .least = least.view(), .most = most.view(), .out = out.view()});
  });
  EXPECT_TRUE(std::isnan(got[3])) << "NaN stays what it is";
  EXPECT_EQ((std::vector<float>{got.begin(), got.begin() + 3}), (std::vector<float>{-2, 1, 7}));
  EXPECT_EQ((std::vector<float>{got.begin() + 4, got.end()}),
            (std::vector<float>{0.5f, -1, -kInfinity, 1}));
}

TEST_P(ClampTest, IsTheDefinitionForAnyShapeAndInPlace) {
  for_all(20, [&](std::mt19937_64& generator) {
    constexpr std::int64_t kIdle = 2;  // rows that are not live
    const std::int64_t rows = uniform(generator, 1, 40);
    const std::int64_t cols =
        uniform(generator, 0, 1) == 0 ? uniform(generator, 1, 30) : 8 * uniform(generator, 1, 40);
    std::vector<float> values = f.rounded(normal_values(generator, rows * cols));
    std::vector<float> least = f.rounded(normal_values(generator, cols));
    std::vector<float> most = least;
    for (float& bound : most) bound += 0.5f;
    most = f.rounded(std::move(most));
    std::vector<float> want;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t column = i % static_cast<std::size_t>(cols);
      want.push_back(std::min(std::max(values[i], least[column]), most[column]));
    }
    values.resize(values.size() + static_cast<std::size_t>(kIdle * cols), kNan);
    const Tensor x = f.activations({rows + kIdle, cols}, values);
    const Tensor low = f.floats({cols}, least);
    const Tensor high = f.floats({cols}, most);
    const Tensor live = f.ints({1}, {static_cast<std::int32_t>(rows)});
    const Tensor out = f.poisoned({rows + kIdle, cols});
    ops::ClampArgs args{.x = x.view(),
                        .least = low.view(),
                        .most = high.view(),
                        .rows = OpFixture::live(live),
                        .out = out.view()};
    auto got = f.run(out, [&](ExecContext& ctx) { ops::clamp(ctx, args); });
    f.expect_untouched(got, rows * cols);
    got.resize(want.size());
    expect_same_bits(got, want);
    args.x = args.out;
    auto in_place = f.run_in_place(out, values, [&](ExecContext& ctx) { ops::clamp(ctx, args); });
    in_place.resize(want.size());
    expect_same_bits(in_place, want);
  });
}

TEST_P(ClampTest, NoRowsIsLegal) {
  const Tensor empty = make_tensor(f.device(), f.dtype(), {0, 4});
  const Tensor bounds = f.floats({4}, {1, 2, 3, 4});
  ExecContext ctx = f.ctx();
  EXPECT_NO_THROW(ops::clamp(
      ctx,
      {.x = empty.view(), .least = bounds.view(), .most = bounds.view(), .out = empty.view()}));
}

TEST_P(ClampTest, NamesWhatIsWrongWithItsArguments) {
  const Tensor x = f.poisoned({2, 4});
  const Tensor bounds = f.floats({4}, {1, 2, 3, 4});
  const auto expect = [&](const std::string& message, const auto& change) {
    ops::ClampArgs args{
        .x = x.view(), .least = bounds.view(), .most = bounds.view(), .out = x.view()};
    change(args);
    ExecContext ctx = f.ctx();
    expect_error(ErrorCode::kInvalidArgument, message, [&] { ops::clamp(ctx, args); });
  };
  expect("clamp: x must have rank 2, got shape [8]", [](auto& a) { a.x.shape = {8}; });
  expect("least must be float32 [4], got float32 [5]", [](auto& a) { a.least.shape = {5}; });
  expect("most must be float32 [4]", [](auto& a) { a.most = {}; });
  expect("[2, 4], got", [](auto& a) { a.out.shape = {1, 4}; });
}

}  // namespace
}  // namespace fovea::test
