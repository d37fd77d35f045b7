// Attention whose later rows see only those before them: double precision, what is not seen, and
// the same bits as without a mask where nothing is hidden.
#include <gtest/gtest.h>

#include <cmath>

#include "fovea/tower/ops/attention.h"
#include "ops/projected_attention_steps.h"
#include "support/naive_ops.h"
#include "support/op_fixture.h"
#include "support/property.h"

namespace fovea::test {
namespace {

class PrefixAttentionTest : public ::testing::TestWithParam<OpCase> {
 protected:
  OpFixture f{GetParam()};

  /// All rows of out, eagerly and replayed.
  std::vector<float> attend(Heads heads, const std::vector<float>& qkv,
                            const std::vector<std::int32_t>& cu, std::int64_t prefix,
                            DType projection = DType::kF32) {
    const std::int64_t rows = static_cast<std::int64_t>(qkv.size()) / (3 * heads.width());
    const Tensor x = f.activations({rows, 3 * heads.width()}, qkv);
    const Tensor starts = f.ints({static_cast<std::int64_t>(cu.size())}, cu);
    const Tensor out = f.poisoned({rows, heads.width()});
    return f.run(out, [&](ExecContext& ctx) {
      ops::attention(
          ctx,
          {.qkv = x.view(),
           .sequences = {.cu_seqlens = starts.view(), .max_seqlen = rows, .prefix_rows = prefix},
           .num_heads = heads.count,
           .head_dim = heads.dim,
           .scale = heads.scale(),
           .out = out.view(),
           .projection_dtype = projection});
    });
  }

  std::vector<float> random_qkv(std::uint64_t seed, std::int64_t rows, Heads heads) {
    std::mt19937_64 generator(seed);
    return f.rounded(normal_values(generator, rows * 3 * heads.width()));
  }

  void expect_naive(Heads heads, const std::vector<std::int32_t>& lengths, std::int64_t prefix) {
    SCOPED_TRACE(::testing::Message()
                 << heads.count << " heads of " << heads.dim << ", prefix " << prefix
                 << ", lengths " << ::testing::PrintToString(lengths));
    const std::vector<std::int32_t> cu = offsets(lengths);
    const std::vector<float> qkv = random_qkv(11, cu.back(), heads);
    f.expect_close(attend(heads, qkv, cu, prefix),
                   naive_attention(qkv, cu, heads.count, heads.dim, heads.scale(), prefix),
                   OpClass::kAttention);
  }
};

INSTANTIATE_TEST_SUITE_P(Devices, PrefixAttentionTest, ::testing::ValuesIn(op_cases()),
                         op_case_name);

TEST_P(PrefixAttentionTest, MatchesDoublePrecisionForEveryPrefix) {
  // Around the widths of vectors, strips, key blocks and tiles.
  for (const std::int64_t prefix : {0, 1, 7, 16, 47, 48, 63, 64, 65, 127, 128, 129, 200, 256, 300})
    expect_naive({1, 64}, {257}, prefix);
}

TEST_P(PrefixAttentionTest, MatchesDoublePrecisionForManySequencesAndHeadDims) {
  for (const std::int64_t dim : {8, 24, 72, 128})
    expect_naive({3, dim}, {1, 90, 0, 7, 200, 16}, 12);
  expect_naive({2, 64}, {288, 288}, 144);  // as DeepSeek-OCR 2 has them
}

TEST_P(PrefixAttentionTest, AFirstRowWithoutAPrefixSeesItselfAlone) {
  const Heads heads{2, 16};
  const std::vector<float> qkv = random_qkv(12, 100, heads);
  const std::vector<float> got = attend(heads, qkv, {0, 100}, 0);
  const auto value = qkv.begin() + 2 * heads.width();
  f.expect_close({got.begin(), got.begin() + heads.width()}, {value, value + heads.width()},
                 OpClass::kPointwise);
}

TEST_P(PrefixAttentionTest, APrefixOfTheWholeSequenceHidesNothing) {
  if (!f.exact_rows()) GTEST_SKIP() << "a backend may choose another kernel";
  const Heads heads{2, 72};
  const std::vector<std::int32_t> cu{0, 150, 300};
  const std::vector<float> qkv = random_qkv(13, 300, heads);
  for (const DType projection : {DType::kF32, DType::kI8}) {
    expect_same_bits(attend(heads, qkv, cu, 150, projection),
                     attend(heads, qkv, cu, ops::kAllRows, projection));
  }
}

TEST_P(PrefixAttentionTest, LaterRowsDoNotReachEarlierOnes) {
  const Heads heads{2, 64};
  const std::int64_t kPrefix = 130;
  const std::int64_t kChanged = 200;
  std::vector<float> qkv = random_qkv(14, 260, heads);
  const std::vector<float> before = attend(heads, qkv, {0, 260}, kPrefix);
  const std::vector<float> other = random_qkv(15, 260, heads);
  const auto from = kChanged * 3 * heads.width();
  std::copy(other.begin() + from, other.end(), qkv.begin() + from);
  const std::vector<float> after = attend(heads, qkv, {0, 260}, kPrefix);
  const auto end = kChanged * heads.width();
  // Integers of 16 bits have scales that cover rows which are not seen: not the same bits.
  f.expect_close({after.begin(), after.begin() + end}, {before.begin(), before.begin() + end},
                 OpClass::kAttention);
}

TEST_P(PrefixAttentionTest, ASequenceHasTheSameBitsAloneAndPacked) {
  if (!f.exact_rows()) GTEST_SKIP() << "not promised by this backend";
  const Heads heads{3, 64};
  const std::vector<float> qkv = random_qkv(16, 500, heads);
  const auto row = 3 * heads.width();
  const std::vector<float> second(qkv.begin() + 290 * row, qkv.end());
  for (const DType projection : {DType::kF32, DType::kI8}) {
    const std::vector<float> packed = attend(heads, qkv, {0, 290, 500}, 100, projection);
    expect_same_bits({packed.begin() + 290 * heads.width(), packed.end()},
                     attend(heads, second, {0, 210}, 100, projection));
  }
}

TEST_P(PrefixAttentionTest, IntegersOf16BitsAreAlmostAsClose) {
  if (!f.exact_rows()) GTEST_SKIP() << "a CPU alone multiplies them";
  for (const std::int64_t prefix : {0, 100, 128, 144}) {
    const Heads heads{2, 64};
    const std::vector<std::int32_t> cu{0, 288, 400};
    const std::vector<float> qkv = random_qkv(17, 400, heads);
    const std::vector<float> got = attend(heads, qkv, cu, prefix, DType::kI8);
    const std::vector<double> want =
        naive_attention(qkv, cu, heads.count, heads.dim, heads.scale(), prefix);
    double difference = 0;
    double norm = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
      difference += std::pow(got[i] - want[i], 2);
      norm += std::pow(want[i], 2);
    }
    constexpr double kSixteenBits = 1e-3;  // steps of weights and values are 1 / 4095
    EXPECT_LT(std::sqrt(difference / norm), kSixteenBits) << prefix;
  }
}

}  // namespace
}  // namespace fovea::test
