// Attention between two lists of rows on every backend: known values, double precision, live
// sequences, replay.
#include "fovea/tower/ops/cross_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "ops/projected_attention_steps.h"
#include "support/expect_error.h"
#include "support/naive_ops.h"
#include "support/op_fixture.h"
#include "support/property.h"

namespace fovea::test {
namespace {

constexpr float kCrossNan = std::numeric_limits<float>::quiet_NaN();

/// Queries and keys of sequences, [rows, heads * dim] and [keys, 2 * heads * dim].
struct CrossCase {
  std::int64_t heads;
  std::int64_t dim;
  std::vector<std::int32_t> queries;  ///< offsets
  std::vector<std::int32_t> keys;
  std::vector<float> q;
  std::vector<float> kv;

  [[nodiscard]] std::int64_t width() const { return heads * dim; }
  [[nodiscard]] float scale() const { return 1.0f / std::sqrt(static_cast<float>(dim)); }
};

std::vector<double> naive(const CrossCase& c) {
  std::vector<double> out(c.q.size());
  for (std::size_t s = 0; s + 1 < c.queries.size(); ++s) {
    for (std::int64_t row = c.queries[s]; row < c.queries[s + 1]; ++row) {
      for (std::int64_t head = 0; head < c.heads; ++head) {
        const std::int64_t at = row * c.width() + head * c.dim;
        double total = 0;
        for (std::int64_t key = c.keys[s]; key < c.keys[s + 1]; ++key) {
          const std::int64_t k = key * 2 * c.width() + head * c.dim;
          double score = 0;
          for (std::int64_t i = 0; i < c.dim; ++i) {
            score += double{c.q[static_cast<std::size_t>(at + i)]} *
                     double{c.kv[static_cast<std::size_t>(k + i)]};
          }
          const double weight = std::exp(score * double{c.scale()});
          total += weight;
          for (std::int64_t i = 0; i < c.dim; ++i) {
            out[static_cast<std::size_t>(at + i)] +=
                weight * double{c.kv[static_cast<std::size_t>(k + c.width() + i)]};
          }
        }
        for (std::int64_t i = 0; i < c.dim && total > 0; ++i) {
          out[static_cast<std::size_t>(at + i)] /= total;
        }
      }
    }
  }
  return out;
}

class CrossAttentionTest : public ::testing::TestWithParam<OpCase> {
 protected:
  OpFixture f{GetParam()};

  CrossCase random_case(std::uint64_t seed, std::int64_t heads, std::int64_t dim,
                        const std::vector<std::int32_t>& query_counts,
                        const std::vector<std::int32_t>& key_counts) {
    std::mt19937_64 generator(seed);
    CrossCase c{heads, dim, offsets(query_counts), offsets(key_counts), {}, {}};
    c.q = f.rounded(normal_values(generator, c.queries.back() * c.width()));
    c.kv = f.rounded(normal_values(generator, c.keys.back() * 2 * c.width()));
    return c;
  }

  std::vector<float> attend(const CrossCase& c) {
    const Tensor q = f.activations({c.queries.back(), c.width()}, c.q);
    const Tensor kv = f.activations({c.keys.back(), 2 * c.width()}, c.kv);
    const Tensor queries = f.ints({std::ssize(c.queries)}, c.queries);
    const Tensor keys = f.ints({std::ssize(c.keys)}, c.keys);
    const Tensor out = f.poisoned({c.queries.back(), c.width()});
    return f.run(out, [&](ExecContext& ctx) {
      ops::cross_attention(ctx, {.q = q.view(),
                                 .kv = kv.view(),
                                 .cu_queries = queries.view(),
                                 .cu_keys = keys.view(),
                                 .num_heads = c.heads,
                                 .head_dim = c.dim,
                                 .scale = c.scale(),
                                 .out = out.view()});
    });
  }
};

INSTANTIATE_TEST_SUITE_P(Devices, CrossAttentionTest, ::testing::ValuesIn(op_cases()),
                         op_case_name);

TEST_P(CrossAttentionTest, WeighsTwoKeysByHand) {
  // Scores ln 3 and 0 with a scale of 8^-0.5: 3/4 of the value 8 and 1/4 of the value 4.
  CrossCase c{1, 8, {0, 1}, {0, 2}, std::vector<float>(8), std::vector<float>(32)};
  c.q[0] = 1;
  c.kv[0] = std::log(3.0f) * std::sqrt(8.0f);
  c.kv[8] = 8;
  c.kv[24] = 4;
  const std::vector<float> out = attend(c);
  EXPECT_NEAR(out[0], 7.0, f.dtype() == DType::kF32 ? 1e-6 : 0.04);
  EXPECT_EQ(out[1], 0.0f);
}

TEST_P(CrossAttentionTest, MatchesDoublePrecisionForEveryHeadDim) {
  std::uint64_t seed = 1;
  for (const std::int64_t dim : {8, 16, 24, 40, 64, 72, 80, 112, 128}) {
    SCOPED_TRACE(dim);
    const CrossCase c = random_case(seed++, 3, dim, {1, 1, 5}, {4, 9, 2});
    f.expect_close(attend(c), naive(c), OpClass::kAttention);
  }
}

TEST_P(CrossAttentionTest, MatchesDoublePrecisionForEveryNumberOfKeys) {
  std::uint64_t seed = 50;
  for (const std::int32_t keys : {1, 2, 3, 15, 16, 17, 63, 64, 65, 128, 200, 1000}) {
    SCOPED_TRACE(keys);
    const CrossCase c = random_case(seed++, 2, 72, {3, 1}, {keys, 7});
    f.expect_close(attend(c), naive(c), OpClass::kAttention);
  }
}

TEST_P(CrossAttentionTest, ManySequencesOfFewKeys) {
  std::mt19937_64 generator(7);
  std::vector<std::int32_t> counts;
  for (int i = 0; i < 700; ++i)
    counts.push_back(static_cast<std::int32_t>(uniform(generator, 1, 9)));
  const CrossCase c = random_case(9, 2, 16, std::vector<std::int32_t>(counts.size(), 1), counts);
  f.expect_close(attend(c), naive(c), OpClass::kAttention);
}

TEST_P(CrossAttentionTest, AQueryWithoutKeysGetsZeros) {
  const CrossCase c = random_case(3, 1, 8, {1, 2, 1}, {3, 0, 2});
  const std::vector<float> out = attend(c);
  for (std::size_t i = 8; i < 24; ++i) EXPECT_EQ(out[i], 0.0f);
  f.expect_close(out, naive(c), OpClass::kAttention);
}

TEST_P(CrossAttentionTest, LargeScoresDoNotOverflow) {
  CrossCase c = random_case(4, 1, 8, {1}, {70});
  for (float& value : c.q) value = 1000;
  for (const float value : attend(c)) EXPECT_TRUE(std::isfinite(value));
}

TEST_P(CrossAttentionTest, ASequenceHasTheSameBitsAloneAndAmongOthers) {
  const CrossCase all = random_case(5, 2, 24, {2, 3, 4}, {70, 5, 130});
  CrossCase one{2, 24, {0, 3}, {0, 5}, {}, {}};
  one.q.assign(all.q.begin() + 2 * 48, all.q.begin() + 5 * 48);
  one.kv.assign(all.kv.begin() + 70 * 96, all.kv.begin() + 75 * 96);
  const std::vector<float> out = attend(all);
  expect_same_bits(attend(one), {out.begin() + 2 * 48, out.begin() + 5 * 48});
}

TEST_P(CrossAttentionTest, AReplayTakesTheLiveSequencesAlone) {
  const CrossCase c = random_case(6, 1, 8, {1, 1, 1}, {2, 3, 1});
  const Tensor q = f.activations({3, 8}, c.q);
  const Tensor kv = f.activations({6, 16}, c.kv);
  const Tensor queries = f.ints({4}, c.queries);
  const Tensor keys = f.ints({4}, c.keys);
  const Tensor live = f.ints({1}, {3});
  const Tensor out = f.poisoned({3, 8});
  const auto graph = f.capture([&](ExecContext& ctx) {
    ops::cross_attention(ctx, {.q = q.view(),
                               .kv = kv.view(),
                               .cu_queries = queries.view(),
                               .cu_keys = keys.view(),
                               .seqs = OpFixture::live(live),
                               .num_heads = 1,
                               .head_dim = 8,
                               .scale = c.scale(),
                               .out = out.view()});
  });
  const std::vector<double> want = naive(c);
  for (const std::int32_t seqs : {2, 0, 3, 1}) {
    f.write(live, std::vector<std::int32_t>{seqs});
    std::vector<float> rows = c.q;
    std::fill(rows.begin() + 8 * seqs, rows.end(), kCrossNan);
    f.write(q, rows);
    f.poison(out);
    f.stream().replay(*graph);
    const std::vector<float> got = f.read(out);
    f.expect_close(got, {want.begin(), want.begin() + 8 * seqs}, OpClass::kAttention);
    f.expect_untouched(got, 8 * seqs);
  }
}

TEST_P(CrossAttentionTest, NamesWhatIsWrongWithItsArguments) {
  const Tensor q = f.poisoned({3, 16});
  const Tensor kv = f.poisoned({6, 32});
  const Tensor out = f.poisoned({3, 16});
  const Tensor queries = f.ints({2}, {0, 3});
  const Tensor keys = f.ints({2}, {0, 6});
  const auto expect = [&](const std::string& message, const auto& change) {
    ops::CrossAttentionArgs args{.q = q.view(),
                                 .kv = kv.view(),
                                 .cu_queries = queries.view(),
                                 .cu_keys = keys.view(),
                                 .num_heads = 2,
                                 .head_dim = 8,
                                 .scale = 1,
                                 .out = out.view()};
    change(args);
    ExecContext ctx = f.ctx();
    expect_error(ErrorCode::kInvalidArgument, message, [&] { ops::cross_attention(ctx, args); });
  };
  expect("cross_attention: num_heads must be > 0, got 0", [](auto& a) { a.num_heads = 0; });
  expect("head_dim must be a positive multiple of 8, got 12", [](auto& a) { a.head_dim = 12; });
  expect("scale must be finite", [](auto& a) { a.scale = kCrossNan; });
  expect("q must be", [](auto& a) { a.num_heads = 3; });
  expect("kv must be", [](auto& a) { a.kv.shape = {12, 16}; });
  expect("out must be", [](auto& a) { a.out.shape = {2, 16}; });
  expect("cu_queries must be int32 [sequences + 1], got shape []",
         [](auto& a) { a.cu_queries.shape = {}; });
  expect("cu_keys must be int32 [2], got int32 [1]", [](auto& a) { a.cu_keys.shape = {1}; });
  expect("out and q must not overlap",
         [](auto& a) { a.out.data = const_cast<std::byte*>(a.q.data); });
}

}  // namespace
}  // namespace fovea::test
