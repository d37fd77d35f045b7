// Rows of a 3 x 3 convolution on every backend: known values, the definition, live counts, replay.
#include <gtest/gtest.h>

#include "fovea/tower/ops/grid.h"
#include "support/expect_error.h"
#include "support/naive_ops.h"
#include "support/op_fixture.h"
#include "support/property.h"

namespace fovea::test {
namespace {

class Im2colTest : public ::testing::TestWithParam<OpCase> {
 protected:
  OpFixture f{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Devices, Im2colTest, ::testing::ValuesIn(op_cases()), op_case_name);

TEST_P(Im2colTest, GathersTheNeighboursOfEveryPixel) {
  const Tensor x = f.activations({4, 1}, {1, 2, 3, 4});
  const Tensor out = f.poisoned({4, 9});
  EXPECT_EQ(f.run(out,
                  [&](ExecContext& ctx) {
                    ops::im2col_3x3(
                        ctx,
                        {.x = x.view(), .height = 2, .width = 2, .stride = 1, .out = out.view()});
                  }),
            (std::vector<float>{0, 0, 0, 0, 1, 2, 0, 3, 4,  //
                                0, 0, 0, 1, 2, 0, 3, 4, 0,  //
                                0, 1, 2, 0, 3, 4, 0, 0, 0,  //
                                1, 2, 0, 3, 4, 0, 0, 0, 0}));
}

TEST_P(Im2colTest, EqualsTheDefinitionForEverySize) {
  for_all(30, [&](std::mt19937_64& generator) {
    const std::int64_t images = uniform(generator, 1, 3);
    const std::int64_t height = uniform(generator, 1, 9);
    const std::int64_t width = uniform(generator, 1, 9);
    const std::int64_t stride = uniform(generator, 1, 2);
    const std::int64_t channels =
        uniform(generator, 0, 1) == 0 ? uniform(generator, 1, 12) : 8 * uniform(generator, 1, 20);
    SCOPED_TRACE(::testing::Message()
                 << height << "x" << width << "x" << channels << ", stride " << stride);
    const std::int64_t pixels = images * height * width;
    const std::vector<float> values = f.rounded(normal_values(generator, pixels * channels));
    const Tensor x = f.activations({pixels, channels}, values);
    const std::int64_t out_rows =
        images * ((height + stride - 1) / stride) * ((width + stride - 1) / stride);
    const Tensor out = f.poisoned({out_rows, 9 * channels});
    expect_same_bits(f.run(out,
                           [&](ExecContext& ctx) {
                             ops::im2col_3x3(ctx, {.x = x.view(),
                                                   .height = height,
                                                   .width = width,
                                                   .stride = stride,
                                                   .out = out.view()});
                           }),
                     naive_im2col_3x3(values, height, width, channels, stride));
  });
}

TEST_P(Im2colTest, AReplayWritesTheLiveRowsAlone) {
  std::mt19937_64 generator(1);
  const std::vector<float> values = f.rounded(normal_values(generator, 3 * 9 * 8));
  const Tensor x = f.activations({27, 8}, values);
  const Tensor out = f.poisoned({12, 72});  // 3 images of 3 x 3 with stride 2
  const Tensor live = f.ints({1}, {12});
  const std::vector<float> want = naive_im2col_3x3(values, 3, 3, 8, 2);
  const auto graph = f.capture([&](ExecContext& ctx) {
    ops::im2col_3x3(ctx, {.x = x.view(),
                          .height = 3,
                          .width = 3,
                          .stride = 2,
                          .rows = OpFixture::live(live),
                          .out = out.view()});
  });
  for (const std::int32_t rows : {12, 4, 0, 8}) {
    f.write(live, std::vector<std::int32_t>{rows});
    f.poison(out);
    f.stream().replay(*graph);
    const std::vector<float> got = f.read(out);
    expect_same_bits({got.begin(), got.begin() + rows * 72},
                     {want.begin(), want.begin() + rows * 72});
    f.expect_untouched(got, rows * 72);
  }
}

TEST_P(Im2colTest, EmptyInputsAreLegal) {
  const Tensor x = make_tensor(f.device(), f.dtype(), {0, 4});
  const Tensor out = make_tensor(f.device(), f.dtype(), {0, 36});
  ExecContext ctx = f.ctx();
  EXPECT_NO_THROW(ops::im2col_3x3(
      ctx, {.x = x.view(), .height = 2, .width = 2, .stride = 1, .out = out.view()}));
}

TEST_P(Im2colTest, NamesWhatIsWrongWithItsArguments) {
  const Tensor x = f.poisoned({12, 4});
  const Tensor out = f.poisoned({8, 36});
  const ops::Im2colArgs good{
      .x = x.view(), .height = 2, .width = 3, .stride = 2, .out = out.view()};
  const auto expect = [&](const std::string& message, const auto& change) {
    ops::Im2colArgs args = good;
    args.out.shape = {4, 36};  // two images, 1 x 2 each
    change(args);
    ExecContext ctx = f.ctx();
    expect_error(ErrorCode::kInvalidArgument, message, [&] { ops::im2col_3x3(ctx, args); });
  };
  const std::string dtype(to_string(f.dtype()));
  expect("im2col_3x3: grid must not be empty and stride 1 or 2, got 0x3 and 2",
         [](auto& a) { a.height = 0; });
  expect("got 2x0 and 2", [](auto& a) { a.width = 0; });
  expect("got 2x3 and 3", [](auto& a) { a.stride = 3; });
  expect("got 2x3 and 0", [](auto& a) { a.stride = 0; });
  expect("x must be float32, float16 or bfloat16, got int32",
         [](auto& a) { a.x.dtype = DType::kI32; });
  expect("x must have rank 2, got shape [48]", [](auto& a) { a.x.shape = {48}; });
  expect("x has 11 rows, which are not whole images of 2x3", [](auto& a) { a.x.shape = {11, 4}; });
  expect("out must be " + dtype + " [4, 36], got " + dtype + " [8, 36]", [](auto& a) {
    a.out.shape = {8, 36};
  });
  expect("out must be " + dtype + " [12, 36], got", [](auto& a) { a.stride = 1; });
  expect("out and x must not overlap",
         [](auto& a) { a.out.data = const_cast<std::byte*>(a.x.data); });
}

}  // namespace
}  // namespace fovea::test
