// Attention on every backend: known values, double precision, packing, live counts, replay.
#include "fovea/tower/ops/attention.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <optional>

#include "ops/projected_attention_steps.h"
#include "support/expect_error.h"
#include "support/naive_ops.h"
#include "support/next_free.h"
#include "support/op_fixture.h"
#include "support/property.h"

namespace fovea::test {
namespace {

class AttentionTest : public ::testing::TestWithParam<OpCase> {
 protected:
  OpFixture f{GetParam()};

  /// Runs attention over qkv, [rows, 3 * width], eagerly and replayed; returns all rows of out.
  std::vector<float> attend(OpFixture& on, Heads heads, const std::vector<float>& qkv,
                            const std::vector<std::int32_t>& cu,
                            std::optional<float> scale = std::nullopt) {
    const std::int64_t rows = static_cast<std::int64_t>(qkv.size()) / (3 * heads.width());
    const Tensor x = on.activations({rows, 3 * heads.width()}, qkv);
    const Tensor starts = on.ints({static_cast<std::int64_t>(cu.size())}, cu);
    const Tensor out = on.poisoned({rows, heads.width()});
    return on.run(out, [&](ExecContext& ctx) {
      ops::attention(ctx, {.qkv = x.view(),
                           .sequences = {.cu_seqlens = starts.view(), .max_seqlen = rows},
                           .num_heads = heads.count,
                           .head_dim = heads.dim,
                           .scale = scale.value_or(heads.scale()),
                           .out = out.view()});
    });
  }
  std::vector<float> attend(Heads heads, const std::vector<float>& qkv,
                            const std::vector<std::int32_t>& cu) {
    return attend(f, heads, qkv, cu);
  }

  std::vector<float> random_qkv(std::mt19937_64& generator, std::int64_t rows, Heads heads) {
    return f.rounded(normal_values(generator, rows * 3 * heads.width()));
  }

  void expect_naive(Heads heads, const std::vector<std::int32_t>& lengths, std::uint64_t seed) {
    SCOPED_TRACE(::testing::Message() << heads.count << " heads of " << heads.dim << ", lengths "
                                      << ::testing::PrintToString(lengths));
    std::mt19937_64 generator(seed);
    const std::vector<std::int32_t> cu = offsets(lengths);
    const std::vector<float> qkv = random_qkv(generator, cu.back(), heads);
    f.expect_close(attend(heads, qkv, cu),
                   naive_attention(qkv, cu, heads.count, heads.dim, heads.scale()),
                   OpClass::kAttention);
  }
};

INSTANTIATE_TEST_SUITE_P(Devices, AttentionTest, ::testing::ValuesIn(op_cases()), op_case_name);

/// Rows of one head of 8 components: q, k and v each have one number in front, zeros behind.
std::vector<float> rows_of_8(const std::vector<std::array<float, 3>>& firsts) {
  std::vector<float> qkv;
  for (const auto& row : firsts) {
    for (const float first : row) {
      qkv.push_back(first);
      qkv.insert(qkv.end(), 7, 0.0f);
    }
  }
  return qkv;
}

TEST_P(AttentionTest, OneKeyReturnsItsValue) {
  std::mt19937_64 generator(1);
  const Heads heads{3, 16};
  const std::vector<float> qkv = random_qkv(generator, 1, heads);
  const std::vector<double> value(qkv.begin() + 2 * heads.width(), qkv.end());
  f.expect_close(attend(heads, qkv, {0, 1}), value, OpClass::kPointwise);
}

TEST_P(AttentionTest, WeighsTwoKeysByHand) {
  // Scores of the first query: ln 3 and 0, so 3/4 of the value 8 and 1/4 of the value 4. The second
  // query is 0: the mean.
  const std::vector<float> out =
      attend(f, {1, 8}, rows_of_8({{1, std::log(3.0f), 8}, {0, 0, 4}}), {0, 2}, 1.0f);
  EXPECT_NEAR(out[0], 7.0, f.dtype() == DType::kF32 ? 1e-6 : 0.02);
  EXPECT_NEAR(out[8], 6.0, f.dtype() == DType::kF32 ? 1e-6 : 0.02);
  EXPECT_EQ(out[1], 0.0f);
}

TEST_P(AttentionTest, AppliesTheScale) {
  const std::vector<float> qkv = rows_of_8({{4, 1, 1}, {0, 0, 0}});
  const double weight = 1 / (1 + std::exp(-2.0));  // 0.5 * 4 * 1
  EXPECT_NEAR(attend(f, {1, 8}, qkv, {0, 2}, 0.5f)[0], weight, 4e-3);
  EXPECT_NEAR(attend(f, {1, 8}, qkv, {0, 2}, -0.5f)[0], 1 - weight, 4e-3);
  EXPECT_EQ(attend(f, {1, 8}, qkv, {0, 2}, 0.0f)[0], 0.5f);
}

TEST_P(AttentionTest, MatchesDoublePrecisionForEveryHeadDim) {
  std::uint64_t seed = 10;
  for (const std::int64_t dim : {8, 16, 24, 40, 64, 72, 80, 88, 96, 112, 128})
    expect_naive({2, dim}, {33, 130}, seed++);
}

TEST_P(AttentionTest, MatchesDoublePrecisionForEveryLength) {
  // Around the widths of vectors, strips, key blocks and tasks.
  std::uint64_t seed = 30;
  for (const std::int32_t length :
       {1, 2, 7, 8, 9, 15, 16, 17, 31, 47, 48, 49, 63, 64, 65, 97, 127, 128, 129, 191, 193, 257})
    expect_naive({1, 72}, {length}, seed++);
}

TEST_P(AttentionTest, MatchesDoublePrecisionForManySequencesAndOddHeads) {
  expect_naive({5, 72}, {1, 64, 7, 3, 200, 16, 1, 1, 90}, 60);
  expect_naive({3, 64}, {257, 1, 40}, 61);
}

TEST_P(AttentionTest, MatchesDoublePrecisionForManyTinySequences) {
  std::vector<std::int32_t> lengths(300);
  for (std::size_t s = 0; s < lengths.size(); ++s) lengths[s] = static_cast<std::int32_t>(s % 4);
  expect_naive({2, 72}, lengths, 63);
}

TEST_P(AttentionTest, MatchesDoublePrecisionForOneLongSequence) {
  expect_naive({1, 72}, {1025}, 62);
}

TEST_P(AttentionTest, ZeroLengthSequencesAreLegalEverywhere) {
  expect_naive({2, 24}, {0, 5, 0, 0, 70, 0}, 70);
}

TEST_P(AttentionTest, SequencesNeedNotCoverAllRows) {
  std::mt19937_64 generator(71);
  const Heads heads{2, 16};
  const std::vector<float> qkv = random_qkv(generator, 40, heads);
  const std::vector<std::int32_t> cu{5, 20, 33};
  const std::vector<float> got = attend(heads, qkv, cu);
  const std::vector<double> want = naive_attention(qkv, cu, heads.count, heads.dim, heads.scale());
  const auto first = 5 * heads.width();
  const auto last = 33 * heads.width();
  f.expect_close({got.begin() + first, got.begin() + last},
                 {want.begin() + first, want.begin() + last}, OpClass::kAttention);
  f.expect_untouched(got, last);
  f.expect_untouched({got.begin(), got.begin() + first}, 0);
}

TEST_P(AttentionTest, ASequenceHasTheSameBitsAloneAndPacked) {
  if (!f.exact_rows()) GTEST_SKIP() << "not promised by this backend";
  for_all(12, [&](std::mt19937_64& generator) {
    const Heads heads{uniform(generator, 1, 3), 8 * uniform(generator, 1, 10)};
    std::vector<std::int32_t> lengths;
    for (int s = 0; s < 6; ++s)
      lengths.push_back(static_cast<std::int32_t>(uniform(generator, 0, 300)));
    const std::vector<std::int32_t> cu = offsets(lengths);
    const std::vector<float> qkv = random_qkv(generator, cu.back(), heads);
    const std::vector<float> packed = attend(heads, qkv, cu);
    for (std::size_t s = 0; s < lengths.size(); ++s) {
      if (lengths[s] == 0) continue;
      const auto rows = [&](const std::vector<float>& all, std::int64_t columns) {
        return std::vector<float>(all.begin() + cu[s] * columns, all.begin() + cu[s + 1] * columns);
      };
      expect_same_bits(attend(heads, rows(qkv, 3 * heads.width()), {0, lengths[s]}),
                       rows(packed, heads.width()));
    }
  });
}

TEST_P(AttentionTest, TheNumberOfThreadsDoesNotChangeBits) {
  if (!f.exact_rows()) GTEST_SKIP() << "not promised by this backend";
  std::mt19937_64 generator(80);
  const Heads heads{4, 72};
  const std::vector<std::int32_t> cu = offsets({500, 3, 77});
  const std::vector<float> qkv = random_qkv(generator, cu.back(), heads);
  OpFixture alone(GetParam(), 1);
  expect_same_bits(attend(heads, qkv, cu), attend(alone, heads, qkv, cu));
}

TEST_P(AttentionTest, NanInOneSequenceReachesNoOther) {
  std::mt19937_64 generator(81);
  const Heads heads{2, 16};
  const std::vector<std::int32_t> cu = offsets({20, 30, 10});
  std::vector<float> qkv = random_qkv(generator, cu.back(), heads);
  const std::vector<float> clean = attend(heads, qkv, cu);
  std::fill(qkv.begin() + cu[1] * 3 * heads.width(), qkv.begin() + cu[2] * 3 * heads.width(), kNan);
  const std::vector<float> mixed = attend(heads, qkv, cu);
  const auto rows = [&](const std::vector<float>& all, int first, int last) {
    return std::vector<float>(all.begin() + first * heads.width(),
                              all.begin() + last * heads.width());
  };
  expect_same_bits(rows(mixed, 0, cu[1]), rows(clean, 0, cu[1]));
  expect_same_bits(rows(mixed, cu[2], cu[3]), rows(clean, cu[2], cu[3]));
  EXPECT_TRUE(std::isnan(mixed[static_cast<std::size_t>(cu[1] * heads.width())]));
}

TEST_P(AttentionTest, HugeScoresChooseOneKey) {
  // e^1000 would overflow; the key with the largest score takes everything.
  const std::vector<float> out =
      attend(f, {1, 8}, rows_of_8({{1, 1000, 3}, {-1, -1000, 5}, {0, 0, 7}}), {0, 3}, 1.0f);
  EXPECT_EQ(out[0], 3.0f);
  EXPECT_EQ(out[8], 5.0f);
  EXPECT_EQ(out[16], 5.0f);  // the mean
}

TEST_P(AttentionTest, VeryNegativeScoresAreAsGoodAsAny) {
  // All scores are -1000: only their differences count. A key that does not exist must not take
  // part in the maximum with its score 0.
  const std::vector<float> qkv = rows_of_8({{1, -1000, 1}, {1, -1000, 2}, {1, -1000, 6}});
  for (const std::size_t row : {0u, 1u, 2u})
    EXPECT_EQ(attend(f, {1, 8}, qkv, {0, 3}, 1.0f)[8 * row], 3.0f);
}

TEST_P(AttentionTest, AMaximumInALaterBlockRescalesTheEarlierOnes) {
  // 300 keys: scores rise by 1/8 per key, so every block of keys has a new maximum.
  std::vector<std::array<float, 3>> rows;
  for (int j = 0; j < 300; ++j)
    rows.push_back({1, static_cast<float>(j) / 8, static_cast<float>(j % 32)});
  const std::vector<float> qkv = f.rounded(rows_of_8(rows));
  f.expect_close(attend(f, {1, 8}, qkv, {0, 300}, 1.0f), naive_attention(qkv, {0, 300}, 1, 8, 1.0),
                 OpClass::kAttention);
}

/// Attention over a capacity of rows and sequences, with live counts in memory.
class LiveAttention {
 public:
  LiveAttention(OpFixture& f, Heads heads, std::int64_t rows, std::int64_t max_seqs)
      : f_(f),
        heads_(heads),
        qkv_(f.poisoned({rows, 3 * heads.width()})),
        cu_(f.ints({max_seqs + 1},
                   std::vector<std::int32_t>(static_cast<std::size_t>(max_seqs + 1), 0))),
        seqs_(f.ints({1}, {0})),
        live_(f.ints({1}, {0})),
        out(f.poisoned({rows, heads.width()})) {}

  /// Rows beyond the sequences are NaN; entries beyond the live offsets are nonsense.
  void set(const std::vector<float>& qkv, std::vector<std::int32_t> cu) {
    std::vector<float> all = qkv;
    all.resize(static_cast<std::size_t>(qkv_.shape.elements()), kNan);
    f_.write(qkv_, all);
    f_.write(seqs_, std::vector<std::int32_t>{static_cast<std::int32_t>(cu.size()) - 1});
    f_.write(live_, std::vector<std::int32_t>{cu.back()});
    cu.resize(static_cast<std::size_t>(cu_.shape[0]), -7);
    f_.write(cu_, cu);
  }
  void operator()(ExecContext& ctx) const {
    ops::attention(ctx, {.qkv = qkv_.view(),
                         .sequences = {.cu_seqlens = cu_.view(),
                                       .seqs = OpFixture::live(seqs_),
                                       .max_seqlen = qkv_.shape[0],
                                       .rows = OpFixture::live(live_)},
                         .num_heads = heads_.count,
                         .head_dim = heads_.dim,
                         .scale = heads_.scale(),
                         .out = out.view()});
  }

 private:
  OpFixture& f_;
  Heads heads_;
  Tensor qkv_;
  Tensor cu_;
  Tensor seqs_;
  Tensor live_;

 public:
  Tensor out;
};

TEST_P(AttentionTest, RowsAndSequencesBeyondTheLiveCountsDoNotMatter) {
  std::mt19937_64 generator(90);
  const Heads heads{2, 24};
  const std::vector<std::int32_t> cu{0, 40, 77};  // 37 queries: the last vector is not full
  const std::vector<float> qkv = random_qkv(generator, 77, heads);
  LiveAttention live(f, heads, 100, 7);
  live.set(qkv, cu);
  const std::vector<float> got = f.run(live.out, [&](ExecContext& ctx) { live(ctx); });
  f.expect_close(got, naive_attention(qkv, cu, heads.count, heads.dim, heads.scale()),
                 OpClass::kAttention);
  f.expect_untouched(got, 77 * heads.width());
}

TEST_P(AttentionTest, AGraphMayHaveRoomForThousandsOfSequences) {
  std::mt19937_64 generator(92);
  const std::vector<std::int32_t> cu{0, 600, 600, 777};
  for (const std::int64_t dim : {72, 96, 128}) {
    const Heads heads{1, dim};
    const std::vector<float> qkv = random_qkv(generator, 777, heads);
    for (const std::int64_t max_seqs : {3000, 20000}) {
      LiveAttention live(f, heads, 800, max_seqs);
      live.set(qkv, cu);
      const std::vector<float> got = f.run(live.out, [&](ExecContext& ctx) { live(ctx); });
      f.expect_close(got, naive_attention(qkv, cu, heads.count, heads.dim, heads.scale()),
                     OpClass::kAttention);
    }
  }
}

TEST_P(AttentionTest, AReplayReadsTheCountsAnew) {
  std::mt19937_64 generator(91);
  const Heads heads{2, 16};
  LiveAttention live(f, heads, 150, 5);
  const std::vector<float> small = random_qkv(generator, 9, heads);
  const std::vector<float> large = random_qkv(generator, 150, heads);
  live.set(small, {0, 4, 9});
  const auto graph = f.capture([&](ExecContext& ctx) { live(ctx); });
  const auto replay = [&](const std::vector<float>& qkv, const std::vector<std::int32_t>& cu) {
    live.set(qkv, cu);
    f.poison(live.out);
    f.stream().replay(*graph);
    std::vector<float> got = f.read(live.out);
    f.expect_close(got, naive_attention(qkv, cu, heads.count, heads.dim, heads.scale()),
                   OpClass::kAttention);
    f.expect_untouched(got, static_cast<std::int64_t>(qkv.size()) / 3);
    got.resize(qkv.size() / 3);
    return got;
  };
  const std::vector<float> first = replay(small, {0, 4, 9});
  replay(large, {0, 100, 100, 101, 149, 150});
  expect_same_bits(replay(small, {0, 4, 9}), first);  // small, large, small
  f.poison(live.out);
  live.set({}, {0});
  f.stream().replay(*graph);  // nothing live at all
  f.expect_untouched(f.read(live.out), 0);
}

TEST_P(AttentionTest, EmptyInputsAreLegal) {
  const Tensor qkv = make_tensor(f.device(), f.dtype(), {0, 48});
  const Tensor out = make_tensor(f.device(), f.dtype(), {0, 16});
  const Tensor cu = f.ints({1}, {0});
  ExecContext ctx = f.ctx();
  EXPECT_NO_THROW(ops::attention(ctx, {.qkv = qkv.view(),
                                       .sequences = {.cu_seqlens = cu.view(), .max_seqlen = 0},
                                       .num_heads = 1,
                                       .head_dim = 16,
                                       .scale = 1,
                                       .out = out.view()}));
}

TEST_P(AttentionTest, GivesTheWorkspaceBack) {
  const std::byte* const before = next_free(f.ctx().arena);
  std::mt19937_64 generator(92);
  (void)attend({1, 8}, random_qkv(generator, 4, {1, 8}), {0, 4});
  EXPECT_EQ(next_free(f.ctx().arena), before);
}

}  // namespace
}  // namespace fovea::test
