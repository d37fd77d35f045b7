// Attention that begins with more than attention: with the rotation, and with the product of
// queries, keys and values. Both must be what the ops do one after the other.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/attention.h"
#include "ops/projected_attention.h"
#include "support/op_fixture.h"

namespace fovea::test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class FusedAttentionTest : public ::testing::TestWithParam<OpCase> {
 protected:
  OpFixture f{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Devices, FusedAttentionTest, ::testing::ValuesIn(op_cases()),
                         op_case_name);

/// Attention with rotary angles in one op, and as rope() followed by attention(). Rows beyond the
/// sequences hold NaN, values and angles alike.
class RotaryAttention {
 public:
  RotaryAttention(OpFixture& f, Heads heads, const std::vector<std::int32_t>& lengths, float scale)
      : f_(f), heads_(heads), scale_(scale), live_rows_(offsets(lengths).back()) {
    constexpr std::int64_t kIdleRows = 11;
    const std::int64_t rows = live_rows_ + kIdleRows;
    std::mt19937_64 generator(static_cast<std::uint64_t>(rows));
    const auto random = [&](std::int64_t columns) {
      std::vector<float> values = normal_values(generator, live_rows_ * columns);
      values.resize(static_cast<std::size_t>(rows * columns), kNan);
      return values;
    };
    values_ = random(3 * heads.width());
    qkv_ = f.activations({rows, 3 * heads.width()}, values_);
    cos_ = f.floats({rows, heads.dim / 2}, random(heads.dim / 2));
    sin_ = f.floats({rows, heads.dim / 2}, random(heads.dim / 2));
    cu_ = f.ints({static_cast<std::int64_t>(lengths.size()) + 1}, offsets(lengths));
    live_ = f.ints({1}, {static_cast<std::int32_t>(live_rows_)});
    out_ = f.poisoned({rows, heads.width()});
  }

  /// The live rows of the result.
  std::vector<float> run(bool fused) {
    const auto prepare = [&] {
      f_.write(qkv_, values_);
      f_.poison(out_);
    };
    return f_.run_live(out_, live_rows_ * heads_.width(), prepare, [&](ExecContext& ctx) {
      ops::AttentionArgs args{.qkv = qkv_.view(),
                              .cos = cos_.view(),
                              .sin = sin_.view(),
                              .cu_seqlens = cu_.view(),
                              .num_heads = heads_.count,
                              .head_dim = heads_.dim,
                              .scale = scale_,
                              .max_seqlen = qkv_.shape[0],
                              .rows = OpFixture::live(live_),
                              .out = out_.view()};
      if (!fused) {
        ops::rope(ctx, ops::rope_args(args));
        args.cos = args.sin = {};
      }
      ops::attention(ctx, args);
    });
  }

 private:
  OpFixture& f_;
  Heads heads_;
  float scale_;
  std::int64_t live_rows_;
  std::vector<float> values_;
  Tensor qkv_, cos_, sin_, cu_, live_, out_;
};

TEST_P(FusedAttentionTest, RotatesQueriesAndKeysAsRopeDoes) {
  const auto expect_the_same = [&](Heads heads, const std::vector<std::int32_t>& lengths,
                                   float scale) {
    SCOPED_TRACE(::testing::Message() << "head_dim " << heads.dim << ", scale " << scale);
    RotaryAttention attention(f, heads, lengths, scale);
    const std::vector<float> fused = attention.run(true);
    for (const float value : fused) ASSERT_TRUE(std::isfinite(value));
    expect_same_bits(fused, attention.run(false));
  };
  // Short and long sequences, of whole slabs of eight rows and not.
  for (const std::int64_t dim : {8, 64, 72, 80, 88, 96, 112, 128})
    expect_the_same({3, dim}, {13, 0, 331, 1, 200}, 0.1f);
  expect_the_same({5, 72}, {400, 264}, 0.1f);
  expect_the_same({2, 72}, {520, 9}, -0.1f);
  expect_the_same({2, 72}, {520, 9}, 0.0f);
}

TEST_P(FusedAttentionTest, BeginsWithTheProductAsLinearDoes) {
  const auto expect_the_same = [&](Heads heads, const std::vector<std::int32_t>& lengths,
                                   bool rotates) {
    SCOPED_TRACE(::testing::Message() << heads.count << " heads of " << heads.dim << ", lengths "
                                      << ::testing::PrintToString(lengths));
    ProjectedAttention attention(f, heads, lengths, rotates);
    const std::vector<float> fused = attention.run(true);
    for (const float value : fused) ASSERT_TRUE(std::isfinite(value));
    const std::vector<float> apart = attention.run(false);
    if (f.exact_rows()) {
      expect_same_bits(fused, apart);
    } else {
      // Kernels that add in another order round some queries, keys and values the other way.
      f.expect_close(fused, {apart.begin(), apart.end()}, OpClass::kAttention);
    }
  };
  for (const std::int64_t dim : {8, 64, 72, 80, 128}) {
    expect_the_same({3, dim}, {13, 0, 331, 1, 200}, true);
    expect_the_same({2, dim}, {8, 16, 590, 7}, false);
  }
  expect_the_same({5, 72}, {400, 264, 9, 0, 0, 641}, true);
  expect_the_same({16, 72}, {700}, true);
}

}  // namespace
}  // namespace fovea::test
