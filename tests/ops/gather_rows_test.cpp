// Rows gathered by index on every backend.
#include "fovea/tower/ops/patch.h"

#include <gtest/gtest.h>

#include <random>

#include "core/check.h"
#include "support/expect_error.h"
#include "support/op_fixture.h"
#include "support/property.h"

namespace fovea::test {
namespace {

class GatherRowsTest : public ::testing::TestWithParam<OpCase> {
 protected:
  OpFixture f{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Devices, GatherRowsTest, ::testing::ValuesIn(op_cases()), op_case_name);

TEST_P(GatherRowsTest, TakesRowsInAnyOrder) {
  std::mt19937_64 generator(7);
  const std::int64_t cols = 37;
  const auto x = f.rounded(normal_values(generator, 20 * cols));
  std::vector<std::int32_t> index;
  std::vector<float> want;
  for (int r = 0; r < 50; ++r) {  // with repetitions
    const auto row = uniform(generator, 0, 19);
    index.push_back(static_cast<std::int32_t>(row));
    want.insert(want.end(), x.begin() + row * cols, x.begin() + (row + 1) * cols);
  }
  index.insert(index.end(), {-1, 1000});  // beyond the live rows
  const Tensor in = f.activations({20, cols}, x);
  const Tensor which = f.ints({52}, index);
  const Tensor live = f.ints({1}, {50});
  const Tensor out = f.poisoned({52, cols});
  auto got = f.run(out, [&](ExecContext& ctx) {
    ops::gather_rows(
        ctx,
        {.x = in.view(), .index = which.view(), .rows = OpFixture::live(live), .out = out.view()});
  });
  f.expect_untouched(got, 50 * cols);
  got.resize(want.size());
  expect_same_bits(got, want);
}

TEST_P(GatherRowsTest, RefusesRowsThatDoNotExist) {
  if (!f.exact_rows()) GTEST_SKIP() << "indices in device memory are not checked";
  const Tensor in = f.poisoned({2, 3});
  const Tensor out = f.poisoned({1, 3});
  for (const std::int32_t row : {-1, 2}) {
    const Tensor index = f.ints({1}, {row});
    ExecContext ctx = f.ctx();
    expect_error(ErrorCode::kInternal, cat("gather_rows: row 0 wants row ", row, " of 2"), [&] {
      ops::gather_rows(ctx, {.x = in.view(), .index = index.view(), .out = out.view()});
    });
  }
}

TEST_P(GatherRowsTest, NamesWhatIsWrongWithItsArguments) {
  const Tensor in = f.poisoned({2, 3});
  const Tensor out = f.poisoned({4, 3});
  const Tensor index = f.ints({4}, {0, 1, 0, 1});
  const ops::GatherRowsArgs good{.x = in.view(), .index = index.view(), .out = out.view()};
  const auto expect = [&](const std::string& message, const auto& change) {
    ops::GatherRowsArgs args = good;
    change(args);
    ExecContext ctx = f.ctx();
    expect_error(ErrorCode::kInvalidArgument, message, [&] { ops::gather_rows(ctx, args); });
  };
  expect("gather_rows: x must have rank 2", [](auto& a) { a.x.shape = {6}; });
  expect("gather_rows: out must have rank 2", [](auto& a) { a.out.shape = {12}; });
  expect("gather_rows: out must be", [](auto& a) { a.out.shape = {3, 4}; });
  expect("gather_rows: index must be int32 [4], got int32 [3]",
         [](auto& a) { a.index.shape = {3}; });
  expect("gather_rows: out and x must not overlap", [](auto& a) { a.x.data = a.out.data; });
}

TEST_P(GatherRowsTest, NoRowsIsLegal) {
  const Tensor x = make_tensor(f.device(), f.dtype(), {0, 12});
  const Tensor out = make_tensor(f.device(), f.dtype(), {0, 12});
  const Tensor index = make_tensor(f.device(), DType::kI32, {0});
  ExecContext ctx = f.ctx();
  EXPECT_NO_THROW(ops::gather_rows(ctx, {.x = x.view(), .index = index.view(), .out = out.view()}));
}

}  // namespace
}  // namespace fovea::test
