// Attention in integers of 16 bits, for every instruction set that this machine has: double
// precision, the same bits from every kernel, batch and number of threads, and what NaN reaches.
#include "ops/cpu/attention/task.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "core/check.h"
#include "core/float_mode.h"
#include "fovea/tower/ops/projected_attention.h"
#include "ops/one_head.h"
#include "ops/projected_attention_steps.h"
#include "support/emulated_attention_kernels.h"
#include "support/op_fixture.h"
#include "support/property.h"

namespace fovea::test {
namespace {

const cpu::AttentionKernel& portable_attention16() {
  return cpu::kPortableUnit.kernels.attention16;
}

class Attention16KernelTest : public ::testing::TestWithParam<cpu::AttentionKernel> {
 protected:
  const cpu::AttentionKernel kernel = GetParam();

  void expect_error_below(double bound, const OneHead& head) {
    EXPECT_LT(head.error(kernel), bound);
  }
};

INSTANTIATE_TEST_SUITE_P(Kernels, Attention16KernelTest,
                         ::testing::ValuesIn(attention_kernels(&cpu::IsaKernels::attention16)),
                         [](const auto& suite) { return std::string(suite.param.name); });

TEST_P(Attention16KernelTest, GivesTheBitsOfThePortableKernelForEveryHeadDimAndLength) {
  for (const std::int64_t dim : {8, 16, 24, 40, 64, 72, 80, 88, 96, 128}) {
    for (const std::int64_t rows : {1, 2, 3, 7, 8, 9, 17, 48, 49, 127, 128, 129, 130, 260, 390}) {
      OneHead head = OneHead::random(rows, dim, static_cast<std::uint64_t>(rows));
      for (std::int64_t row = 0; row < rows; row += 5) head.at(row, 1, row % dim) *= 40.0f;
      expect_same_bits(head.run(kernel), head.run(portable_attention16()));
      if (HasFailure()) FAIL() << rows << " rows, head_dim " << dim;
    }
  }
}

// Few and short sequences: the emulator takes a hundred times as long as a processor.
TEST(Attention16Tiles, OverAnEmulatorGiveTheBitsOfThePortableKernel) {
  for (const std::int64_t dim : {8, 24, 64, 72, 136}) {
    for (const std::int64_t rows : {1, 17, 130}) {
      const OneHead head = OneHead::random(rows, dim, static_cast<std::uint64_t>(rows));
      expect_same_bits(head.run(emulated_attention16_kernel()), head.run(portable_attention16()));
      if (::testing::Test::HasFailure()) FAIL() << rows << " rows, head_dim " << dim;
    }
  }
}

TEST_P(Attention16KernelTest, GivesTheBitsOfThePortableKernelForTinyAndHugeNumbers) {
  for (const float factor : {0.0f, 1e-40f, 1e-33f, 1e-18f, 1e8f, 1e15f}) {
    OneHead head = OneHead::random(140, 72, 3);
    for (float& value : head.qkv) value *= factor;
    expect_same_bits(head.run(kernel), head.run(portable_attention16()));
  }
}

// Bounds are twice what was seen.
TEST_P(Attention16KernelTest, IsCloseToDoublePrecision) {
  expect_error_below(1.1e-3, OneHead::random(300, 64, 1));
  expect_error_below(1.1e-3, OneHead::random(300, 128, 2));
}

/// Keys of which number 17 has the same large score for every query.
OneHead with_sink(float score) {
  OneHead head = OneHead::random(1024, 64, 4);
  for (std::int64_t row = 0; row < head.rows(); ++row) {
    head.at(row, 0, 0) = 8.0f;
    head.at(row, 1, 0) = 0.0f;
  }
  for (std::int64_t d = 0; d < head.dim; ++d) head.at(17, 1, d) = 0.0f;
  head.at(17, 1, 0) = score;
  return head;
}

TEST_P(Attention16KernelTest, AnAttentionSinkLeavesOtherBlocksTheirSteps) {
  expect_error_below(2.6e-3, with_sink(12.0f));  // 0.99 of all
  // A fifth of all, with a value near 0: the output is made of the others, which would have 10
  // steps if the sink set the steps of all blocks.
  OneHead silent = with_sink(6.0f);
  for (std::int64_t d = 0; d < silent.dim; ++d) silent.at(17, 2, d) *= 1e-3f;
  expect_error_below(8e-3, silent);
}

TEST_P(Attention16KernelTest, NearlyUniformRowsAddUpOver4096Keys) {
  OneHead head = OneHead::random(4096, 64, 5);
  for (std::int64_t row = 0; row < 4096; ++row) {
    for (std::int64_t d = 0; d < head.dim; ++d) head.at(row, 0, d) *= 0.05f;
  }
  expect_error_below(5e-4, head);
}

TEST_P(Attention16KernelTest, ALargeChannelOfTheKeysLeavesStepsToTheOthers) {
  OneHead head = OneHead::random(512, 64, 6);
  for (std::int64_t row = 0; row < 512; ++row) head.at(row, 1, 3) += 50.0f;
  expect_error_below(3e-3, head);
}

TEST_P(Attention16KernelTest, ALargeChannelOfTheValuesLeavesTheOthersAsTheyAre) {
  OneHead head = OneHead::random(512, 64, 6);
  std::vector<float> want = head.run(kernel);
  for (std::int64_t row = 0; row < 512; ++row) head.at(row, 2, 5) *= 64.0f;
  std::vector<float> got = head.run(kernel);
  for (std::size_t i = 5; i < got.size(); i += 64) {
    ASSERT_EQ(got[i], 64.0f * want[i]);
    got[i] = want[i] = 0;
  }
  expect_same_bits(got, want);
}

TEST_P(Attention16KernelTest, AConstantValueComesOutAsItIs) {
  OneHead head = OneHead::random(200, 16, 7);
  for (std::int64_t row = 0; row < 200; ++row) {
    for (std::int64_t d = 0; d < 16; ++d) head.at(row, 2, d) = 0.3f * static_cast<float>(d) - 2;
  }
  const std::vector<float> out = head.run(kernel);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const float want = 0.3f * static_cast<float>(i % 16) - 2;
    ASSERT_NEAR(out[i], want, 1e-6 * std::abs(want)) << i;
  }
}

TEST_P(Attention16KernelTest, SumsOfTheLargestIntegersFit32Bits) {
  for (const std::int64_t dim : {8, 64, 128, 256}) {
    const OneHead head{dim, std::vector<float>(static_cast<std::size_t>(3 * dim * 256), 1.0f)};
    for (const float value : head.run(kernel)) ASSERT_NEAR(value, 1.0f, 1e-6f);
  }
}

TEST_P(Attention16KernelTest, ANegativeScalePrefersTheSmallestProducts) {
  OneHead head = OneHead::random(60, 24, 8);
  OneHead flipped = head;
  for (std::int64_t row = 0; row < 60; ++row) {
    for (std::int64_t d = 0; d < 24; ++d) flipped.at(row, 0, d) *= -1.0f;
  }
  expect_same_bits(head.run(kernel, -0.2f), flipped.run(kernel, 0.2f));
}

TEST_P(Attention16KernelTest, RotatesQueriesAndKeysByTheirAngles) {
  for (const std::int64_t dim : {8, 24, 64, 72, 392, 776, 1544}) {
    const OneHead head = OneHead::random(150, dim, 10);
    const Angles angles = Angles::random(150, dim, 11);
    expect_same_bits(head.run(kernel, angles.cos, angles.sin), angles.applied_to(head).run(kernel));
  }
}

TEST_P(Attention16KernelTest, OneKeyThatIsNotANumberReachesEveryQuery) {
  for (const float value : {kNan, kInfinity, -kInfinity}) {
    OneHead head = OneHead::random(150, 24, 9);
    head.at(140, 1, 23) = value;
    for (const float result : head.run(kernel)) ASSERT_TRUE(std::isnan(result));
  }
}

TEST_P(Attention16KernelTest, AQueryThatIsNotANumberReachesItsRowOnly) {
  for (const float value : {kNan, kInfinity, -kInfinity}) {
    expect_reaches_only(
        kernel, {77, 0, 3, value}, [](std::int64_t row, std::int64_t) { return row == 77; },
        [](float result) { return std::isnan(result); });
  }
}

TEST_P(Attention16KernelTest, AValueThatIsNotANumberReachesItsComponentOnly) {
  for (const float value : {kNan, kInfinity, -kInfinity}) {
    expect_reaches_only(
        kernel, {3, 2, 7, value}, [](std::int64_t, std::int64_t d) { return d == 7; },
        [](float result) { return std::isnan(result); });
  }
}

std::vector<OpCase> cpu_cases() {
  std::vector<OpCase> cases = op_cases();
  std::erase_if(cases, [](const OpCase& op_case) { return op_case.dtype != DType::kF32; });
  return cases;
}

class Attention16Test : public ::testing::TestWithParam<OpCase> {
 protected:
  std::vector<float> attend(OpFixture& on, Heads heads, const std::vector<float>& qkv,
                            const std::vector<std::int32_t>& cu,
                            DType projection_dtype = DType::kI8) {
    const std::int64_t rows = static_cast<std::int64_t>(qkv.size()) / (3 * heads.width());
    const Tensor x = on.activations({rows, 3 * heads.width()}, qkv);
    const Tensor starts = on.ints({static_cast<std::int64_t>(cu.size())}, cu);
    const Tensor out = on.poisoned({rows, heads.width()});
    return on.run(out, [&](ExecContext& ctx) {
      ops::attention(ctx, {.qkv = x.view(),
                           .sequences = {.cu_seqlens = starts.view(), .max_seqlen = rows},
                           .num_heads = heads.count,
                           .head_dim = heads.dim,
                           .scale = heads.scale(),
                           .out = out.view(),
                           .projection_dtype = projection_dtype});
    });
  }

  OpFixture f{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Devices, Attention16Test, ::testing::ValuesIn(cpu_cases()), op_case_name);

TEST_P(Attention16Test, ASequenceHasTheSameBitsAloneAndPacked) {
  for_all(6, [&](std::mt19937_64& generator) {
    const Heads heads{uniform(generator, 1, 3), 8 * uniform(generator, 1, 16)};
    std::vector<std::int32_t> lengths{0, 1};
    for (int s = 0; s < 4; ++s)
      lengths.push_back(static_cast<std::int32_t>(uniform(generator, 0, 300)));
    const std::vector<std::int32_t> cu = offsets(lengths);
    const std::vector<float> qkv = normal_values(generator, cu.back() * 3 * heads.width());
    const std::vector<float> packed = attend(f, heads, qkv, cu);
    for (std::size_t s = 0; s < lengths.size(); ++s) {
      if (lengths[s] == 0) continue;
      const auto rows = [&](const std::vector<float>& all, std::int64_t columns) {
        return std::vector<float>(all.begin() + cu[s] * columns, all.begin() + cu[s + 1] * columns);
      };
      expect_same_bits(attend(f, heads, rows(qkv, 3 * heads.width()), {0, lengths[s]}),
                       rows(packed, heads.width()));
    }
  });
}

TEST_P(Attention16Test, NeitherKernelNorThreadsChangeBits) {
  std::mt19937_64 generator(80);
  const Heads heads{4, 72};
  const std::vector<std::int32_t> cu = offsets({900, 3, 77});
  const std::vector<float> qkv = normal_values(generator, cu.back() * 3 * heads.width());
  const std::vector<float> got = attend(f, heads, qkv, cu);
  OpFixture alone(GetParam(), 1);
  expect_same_bits(got, attend(alone, heads, qkv, cu));
  OpFixture first(cpu_cases().front());
  expect_same_bits(got, attend(first, heads, qkv, cu));
}

TEST_P(Attention16Test, ComesBehindIntegersOfEightBitsAlone) {
  std::mt19937_64 generator(81);
  const Heads heads{2, 64};
  const std::vector<std::int32_t> cu = offsets({70});
  const std::vector<float> qkv = normal_values(generator, cu.back() * 3 * heads.width());
  const std::vector<float> native = attend(f, heads, qkv, cu, DType::kF32);
  expect_same_bits(native, attend(f, heads, qkv, cu, DType::kF8E4M3));
  EXPECT_NE(native, attend(f, heads, qkv, cu, DType::kI8));
}

}  // namespace
}  // namespace fovea::test
