#pragma once

// Attention whose beginning, the product of queries, keys and values, may be left to the op.

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "ops/attention.h"
#include "support/op_fixture.h"

namespace fovea::test {

struct Heads {
  std::int64_t count;
  std::int64_t dim;
  [[nodiscard]] std::int64_t width() const { return count * dim; }
  [[nodiscard]] float scale() const { return 1.0f / std::sqrt(static_cast<float>(dim)); }
};

/// Sequences of these lengths one after the other: 0, l0, l0 + l1, ...
inline std::vector<std::int32_t> offsets(const std::vector<std::int32_t>& lengths) {
  std::vector<std::int32_t> cu{0};
  for (const std::int32_t length : lengths) cu.push_back(cu.back() + length);
  return cu;
}

/// Attention that begins with the product, and the product followed by attention, over random
/// values. Rows beyond the sequences hold NaN, offsets beyond them nonsense.
class ProjectedAttention {
 public:
  static constexpr std::int64_t kFeatures = 136;  ///< two blocks of columns and a tail
  static constexpr std::int64_t kIdleRows = 21;   ///< beyond the sequences

  ProjectedAttention(OpFixture& f, Heads heads, const std::vector<std::int32_t>& lengths,
                     bool rotates)
      : f_(f), heads_(heads), rotates_(rotates), live_rows_(offsets(lengths).back()) {
    constexpr std::int64_t kIdleSequences = 3;
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    const std::int64_t rows = live_rows_ + kIdleRows;
    std::mt19937_64 generator(static_cast<std::uint64_t>(rows));
    const auto random = [&](std::int64_t columns, float scale) {
      std::vector<float> values = normal_values(generator, live_rows_ * columns);
      for (float& value : values) value *= scale;
      values.resize(static_cast<std::size_t>(rows * columns), kNan);
      return values;
    };
    const std::int64_t width = heads.width();
    const std::vector<float> weight = f.rounded(normal_values(generator, 3 * width * kFeatures));
    const std::vector<float> bias = f.rounded(normal_values(generator, 3 * width));
    projection_ = ops::pack_linear(f.device(), view_of(weight, {3 * width, kFeatures}),
                                   view_of(bias, {3 * width}));
    x_ = f.activations({rows, kFeatures}, random(kFeatures, 0.1f));
    qkv_ = f.poisoned({rows, 3 * width});
    cos_ = f.floats({rows, heads.dim / 2}, random(heads.dim / 2, 1.0f));
    sin_ = f.floats({rows, heads.dim / 2}, random(heads.dim / 2, 1.0f));
    std::vector<std::int32_t> cu = offsets(lengths);
    seqs_ = f.ints({1}, {static_cast<std::int32_t>(lengths.size())});
    cu.resize(cu.size() + kIdleSequences, -7);
    cu_ = f.ints({static_cast<std::int64_t>(cu.size())}, cu);
    live_ = f.ints({1}, {static_cast<std::int32_t>(live_rows_)});
    out_ = f.poisoned({rows, width});
  }

  /// The live rows of the result, eagerly and recorded.
  /// @param fused the product is the beginning of attention.
  std::vector<float> run(bool fused) {
    const auto prepare = [&] {
      f_.poison(qkv_);
      f_.poison(out_);
    };
    return f_.run_live(out_, live_rows_ * heads_.width(), prepare, [&](ExecContext& ctx) {
      ops::AttentionArgs args{.x = x_.view(),
                              .projection = &projection_,
                              .qkv = qkv_.view(),
                              .cu_seqlens = cu_.view(),
                              .seqs = OpFixture::live(seqs_),
                              .num_heads = heads_.count,
                              .head_dim = heads_.dim,
                              .scale = heads_.scale(),
                              .max_seqlen = qkv_.shape[0],
                              .rows = OpFixture::live(live_),
                              .out = out_.view()};
      if (rotates_) {
        args.cos = cos_.view();
        args.sin = sin_.view();
      }
      if (!fused) {
        ops::linear(ctx, ops::projection_args(args));
        args.x = {};
        args.projection = nullptr;
      }
      ops::attention(ctx, args);
    });
  }

 private:
  OpFixture& f_;
  Heads heads_;
  bool rotates_;
  std::int64_t live_rows_;
  ops::PackedLinear projection_;
  Tensor x_, qkv_, cos_, sin_, cu_, seqs_, live_, out_;
};

}  // namespace fovea::test
