// Attention in bf16 in the tiles of AMX, over an emulator and, where this machine has AMX, in its
// instructions: double precision, the same bits from both, what a query's bits depend on, and what
// NaN reaches.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "ops/one_head.h"
#include "support/emulated_attention_kernels.h"
#include "support/property.h"
#include "support/tile_emulator.h"

namespace fovea::test {
namespace {

std::vector<cpu::AttentionKernel> tile_kernels() {
  std::vector<cpu::AttentionKernel> all = attention_kernels(&cpu::IsaKernels::attention_bf16);
  all.push_back(emulated_bf16_attention_kernel());
  return all;
}

class Bf16AttentionTest : public ::testing::TestWithParam<cpu::AttentionKernel> {
 protected:
  const cpu::AttentionKernel kernel = GetParam();
};

INSTANTIATE_TEST_SUITE_P(Kernels, Bf16AttentionTest, ::testing::ValuesIn(tile_kernels()),
                         [](const auto& suite) { return std::string(suite.param.name); });

// Bounds are twice what was seen.
TEST_P(Bf16AttentionTest, IsCloseToDoublePrecisionForEveryHeadDimAndLength) {
  for (const std::int64_t dim : {8, 16, 24, 40, 64, 72, 80, 88, 96, 128, 136}) {
    for (const std::int64_t rows : {1, 2, 3, 15, 16, 17, 31, 32, 33, 48, 49, 127, 128, 129, 161}) {
      const OneHead head = OneHead::random(rows, dim, static_cast<std::uint64_t>(rows));
      EXPECT_LT(head.error(kernel), 1.2e-2) << rows << " rows, head_dim " << dim;
    }
  }
}

TEST_P(Bf16AttentionTest, IsCloseToDoublePrecision) {
  EXPECT_LT(OneHead::random(300, 64, 1).error(kernel), 6.3e-3);
  EXPECT_LT(OneHead::random(300, 128, 2).error(kernel), 6.3e-3);
}

TEST_P(Bf16AttentionTest, GivesTheBitsOfTheEmulator) {
  for (const std::int64_t dim : {8, 24, 64, 72, 136}) {
    for (const std::int64_t rows : {1, 17, 130}) {
      const OneHead head = OneHead::random(rows, dim, static_cast<std::uint64_t>(rows));
      expect_same_bits(head.run(kernel), head.run(emulated_bf16_attention_kernel()));
      if (HasFailure()) FAIL() << rows << " rows, head_dim " << dim;
    }
  }
}

TEST_P(Bf16AttentionTest, AQueryHasTheSameBitsInEveryTask) {
  const OneHead head = OneHead::random(150, 72, 3);
  const std::vector<float> all = head.run(kernel);
  for (const std::int64_t queries : {1, 5, 12, 16, 17, 33, 47, 49}) {
    for (const std::int64_t first : {0, 1, 60}) {
      const std::vector<float> some = head.run(kernel, [&](cpu::AttentionTask& task) {
        task.q += first * task.q_stride;
        task.num_queries = queries;
      });
      const auto begin = all.begin() + first * head.dim;
      expect_same_bits(some, std::vector<float>(begin, begin + queries * head.dim));
    }
  }
}

/// Keys whose scores rise from block to block, or fall, in steps that bf16 has.
OneHead with_slope(float slope) {
  OneHead head = OneHead::random(400, 64, 4);
  for (std::int64_t row = 0; row < head.rows(); ++row) {
    head.at(row, 0, 0) = 8.0f;
    head.at(row, 1, 0) = std::round(slope * static_cast<float>(row) / 100.0f) / 4.0f;
  }
  return head;
}

TEST_P(Bf16AttentionTest, LargerScoresInLaterBlocksTakeOver) {
  EXPECT_LT(with_slope(30.0f).error(kernel), 6.3e-3);
  EXPECT_LT(with_slope(-30.0f).error(kernel), 6.3e-3);
}

TEST_P(Bf16AttentionTest, SmallWeightsBesideALargeOneKeepTheirPrecision) {
  // One key has a fifth of all weight, and a value near 0: outputs are made of the others.
  OneHead head = OneHead::random(512, 64, 5);
  for (std::int64_t row = 0; row < head.rows(); ++row) {
    head.at(row, 0, 0) = 8.0f;
    head.at(row, 1, 0) = 0.0f;
  }
  for (std::int64_t d = 0; d < head.dim; ++d) {
    head.at(17, 1, d) = d == 0 ? 5.3f : 0.0f;
    head.at(17, 2, d) *= 1e-3f;
  }
  EXPECT_LT(head.error(kernel), 1.2e-2);
}

TEST_P(Bf16AttentionTest, TakesTinyAndHugeNumbers) {
  for (const float factor : {0.0f, 1e-40f, 1e-18f, 1e8f}) {
    OneHead head = OneHead::random(140, 72, 3);
    for (float& value : head.qkv) value *= factor;
    for (const float result : head.run(kernel)) ASSERT_TRUE(std::isfinite(result)) << factor;
  }
}

TEST_P(Bf16AttentionTest, RotatesQueriesAndKeysByTheirAngles) {
  for (const std::int64_t dim : {8, 64, 72, 392}) {
    const OneHead head = OneHead::random(150, dim, 10);
    const Angles angles = Angles::random(150, dim, 11);
    expect_same_bits(head.run(kernel, angles.cos, angles.sin), angles.applied_to(head).run(kernel));
  }
}

TEST_P(Bf16AttentionTest, RowsBehindThePrefixSeeThoseBeforeThem) {
  const OneHead head = OneHead::random(270, 64, 12);
  for (const std::int64_t prefix : {0, 1, 100, 129, 269}) {
    const std::vector<float> out =
        head.run(kernel, [&](cpu::AttentionTask& task) { task.prefix_keys = prefix; });
    double difference = 0;
    double norm = 0;
    for (const std::int64_t query : {0, 1, 99, 100, 128, 130, 200, 269}) {
      const std::vector<double> want = head.exact(query, std::max(prefix, query + 1));
      for (std::size_t d = 0; d < want.size(); ++d) {
        difference += std::pow(out[static_cast<std::size_t>(query * head.dim) + d] - want[d], 2);
        norm += std::pow(want[d], 2);
      }
    }
    EXPECT_LT(std::sqrt(difference / norm), 7e-3) << prefix;
  }
}

TEST_P(Bf16AttentionTest, OneKeyThatIsNotANumberReachesEveryQuery) {
  OneHead head = OneHead::random(150, 24, 9);
  head.at(140, 1, 23) = kNan;
  for (const float result : head.run(kernel)) ASSERT_TRUE(std::isnan(result));
}

TEST_P(Bf16AttentionTest, AQueryThatIsNotANumberReachesItsRowOnly) {
  for (const float value : {kNan, kInfinity, -kInfinity}) {
    expect_reaches_only(
        kernel, {77, 0, 3, value}, [](std::int64_t row, std::int64_t) { return row == 77; },
        [](float result) { return std::isnan(result); });
  }
}

TEST_P(Bf16AttentionTest, AValueThatIsNotANumberReachesItsComponentOnly) {
  for (const float value : {kNan, kInfinity, -kInfinity}) {
    expect_reaches_only(
        kernel, {3, 2, 7, value}, [](std::int64_t, std::int64_t d) { return d == 7; },
        [](float result) { return !std::isfinite(result); });
  }
}

TEST(Bf16AttentionTiles, AreFreeWhenATaskEnds) {
  (void)OneHead::random(3, 8, 1).run(emulated_bf16_attention_kernel());
  EXPECT_TRUE(EmulatedTiles::are_free());
}

}  // namespace
}  // namespace fovea::test
