// The CPU bodies that exist once per instruction set, each on its own.
#include "ops/cpu/isa/isa_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "core/check.h"
#include "support/naive_ops.h"
#include "support/op_fixture.h"

namespace fovea::test {
namespace {

class IsaBodiesTest : public ::testing::TestWithParam<OpCase> {
 protected:
  [[nodiscard]] static cpu::IsaKernels kernels() {
    for (const CpuIsa isa : cpu_isas()) {
      if (GetParam().device.name == cat("cpu_", to_string(isa)))
        return cpu::choose_kernels(cpu::features_up_to(isa));
    }
    throw std::logic_error("not a CPU");
  }
};

std::vector<OpCase> isa_cases() {
  std::vector<OpCase> cases;
  for (const OpCase& op_case : op_cases()) {
    if (op_case.device.name.starts_with("cpu_")) cases.push_back(op_case);
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(InstructionSets, IsaBodiesTest, ::testing::ValuesIn(isa_cases()),
                         op_case_name);

// Check values: the toy vector of the Qwen towers, patch (1, 2) with inverse frequencies 1 and
// 0.01.
TEST_P(IsaBodiesTest, RotatesAHandComputedHead) {
  std::vector<float> head{1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<float> cos, sin;
  for (const double angle : {1.0, 0.01, 2.0, 0.02}) {
    cos.push_back(static_cast<float>(std::cos(angle)));
    sin.push_back(static_cast<float>(std::sin(angle)));
  }
  kernels().rows.rotate(head.data(), cos.data(), sin.data(), 1, 8);
  const std::vector<double> want{-3.667053, 1.939901, -7.613522, 3.839211,
                                 3.542983,  6.0197,   -0.185136, 8.078395};
  for (std::size_t j = 0; j < want.size(); ++j) EXPECT_NEAR(head[j], want[j], 1e-6) << j;
}

TEST_P(IsaBodiesTest, RotatesEveryHeadByTheAnglesOfItsRow) {
  for (const std::int64_t dim : {2, 6, 8, 72, 80, 88, 128}) {
    SCOPED_TRACE(dim);
    constexpr std::int64_t kHeads = 3;  // q, k and v of one head each; v is left alone
    std::mt19937_64 generator(static_cast<std::uint64_t>(dim));
    const std::vector<float> qkv = normal_values(generator, kHeads * dim);
    std::vector<float> cos, sin;
    for (const float angle : normal_values(generator, dim / 2)) {
      cos.push_back(std::cos(angle));
      sin.push_back(std::sin(angle));
    }
    std::vector<float> got = qkv;
    kernels().rows.rotate(got.data(), cos.data(), sin.data(), kHeads - 1, dim);
    const std::vector<double> want = naive_rope(qkv, cos, sin, 1, dim);
    for (std::size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-6) << i;
  }
}

TEST_P(IsaBodiesTest, PowerOfTwoIsAccurateEverywhere) {
  std::vector<float> x;
  for (int i = -2000000; i <= 2000000; ++i) x.push_back(static_cast<float>(i) * 63e-6f);
  std::vector<float> y(x.size());
  kernels().attention.exp2(x.data(), y.data(), static_cast<std::int64_t>(x.size()));
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double want = std::exp2(static_cast<double>(x[i]));
    worst = std::max(worst, std::abs(y[i] / want - 1));
  }
  EXPECT_LE(worst, 2e-7);
}

TEST_P(IsaBodiesTest, PowerOfTwoOfSpecialValues) {
  const std::vector<float> x{0.0f,       -0.0f,  1.0f,    -1.0f,        10.0f,
                             -kInfinity, -1e30f, -500.0f, std::nanf("")};
  std::vector<float> y(x.size(), -1.0f);
  kernels().attention.exp2(x.data(), y.data(), static_cast<std::int64_t>(x.size()));
  const std::vector<float> want{1, 1, 2, 0.5f, 1024, 0, 0, 0};
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_EQ(y[i], want[i]) << x[i];
  EXPECT_TRUE(std::isnan(y.back()));
}

TEST_P(IsaBodiesTest, PowerOfTwoFadesOutBelowTheSmallestNumbers) {
  const std::vector<float> x{-126.0f, -130.0f, -140.0f, -149.0f, -151.0f};
  std::vector<float> y(x.size());
  kernels().attention.exp2(x.data(), y.data(), static_cast<std::int64_t>(x.size()));
  EXPECT_EQ(y[0], 0x1p-126f);
  for (std::size_t i = 1; i < x.size(); ++i) {  // the right number or zero
    EXPECT_GE(y[i], 0.0f);
    EXPECT_LE(y[i], std::exp2(x[i]));
  }
}

TEST_P(IsaBodiesTest, AttentionStaysInsideItsScratch) {
  const cpu::AttentionKernel attention = kernels().attention;
  for (const std::int64_t dim : {8, 24, 72, 128}) {
    // As many queries as a task may have, and several blocks of keys; then a grid with a bias.
    const std::int64_t most = cpu::task_queries(attention, dim);
    for (const std::int64_t bias_entries : {0, 40}) {
      const std::int64_t rows = bias_entries == 0 ? most : cpu::kMaxTaskQueries;
      const std::int64_t floats = attention.scratch_floats(dim, rows, bias_entries);
      std::vector<float> scratch(static_cast<std::size_t>(floats + 32), -1.0f);
      std::mt19937_64 generator(2);
      const std::vector<float> qkv = normal_values(generator, rows * 3 * dim);
      const std::vector<float> bias = normal_values(generator, rows * bias_entries);
      std::vector<float> out(static_cast<std::size_t>(rows * dim));
      // The end of the scratch lies 16 floats before the end of the memory.
      attention.run({.q = qkv.data(),
                     .q_stride = 3 * dim,
                     .k = qkv.data() + dim,
                     .v = qkv.data() + 2 * dim,
                     .stride = 3 * dim,
                     .num_queries = rows,
                     .num_keys = bias_entries == 0 ? rows : 384,  // 24 x 16
                     .head_dim = dim,
                     .scale = 1,
                     .out = out.data(),
                     .out_stride = dim,
                     .scratch = scratch.data() + 16,
                     .bias = bias_entries == 0 ? nullptr : bias.data(),
                     .bias_rows = bias_entries == 0 ? 0 : 24,
                     .bias_cols = bias_entries == 0 ? 0 : 16});
      for (std::size_t i = 0; i < 16; ++i) {
        ASSERT_EQ(scratch[i], -1.0f) << "before the scratch, head_dim " << dim;
        ASSERT_EQ(scratch[scratch.size() - 1 - i], -1.0f) << "behind it, head_dim " << dim;
      }
    }
  }
}

}  // namespace
}  // namespace fovea::test
