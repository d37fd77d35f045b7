#pragma once

// Attention over a projection, as one op and step by step.

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "fovea/tower/ops/projected_attention.h"
#include "ops/steps.h"
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

/// Random values, in tensors with more rows than the sequences have. Rows beyond them hold NaN,
/// offsets beyond them nonsense.
class ProjectedAttention {
 public:
  static constexpr std::int64_t kFeatures = 136;     ///< two blocks of columns and a tail
  static constexpr std::int64_t kFp8Features = 272;  ///< likewise, of E4M3
  static constexpr std::int64_t kIdleRows = 21;      ///< beyond the sequences
  static constexpr float kEpsilon = 1e-5f;           ///< of the norms

  ProjectedAttention(OpFixture& f, Heads heads, const std::vector<std::int32_t>& lengths,
                     bool rotates, ops::WeightFormat format = ops::WeightFormat::kNative)
      : f_(f),
        heads_(heads),
        rotates_(rotates),
        scale_(heads.scale()),
        live_rows_(offsets(lengths).back()) {
    constexpr std::int64_t kIdleSequences = 3;
    const std::int64_t rows = live_rows_ + kIdleRows;
    std::mt19937_64 generator(static_cast<std::uint64_t>(rows));
    const auto random = [&](std::int64_t columns, float scale) {
      std::vector<float> values = normal_values(generator, live_rows_ * columns);
      for (float& value : values) value *= scale;
      return with_idle_rows(std::move(values), columns);
    };
    const std::int64_t width = heads.width();
    const std::int64_t features = format == ops::WeightFormat::kFp8 ? kFp8Features : kFeatures;
    const std::vector<float> weight = f.rounded(normal_values(generator, 3 * width * features));
    const std::vector<float> bias = f.rounded(normal_values(generator, 3 * width));
    projection_ = ops::pack_linear(f.device(), view_of(weight, {3 * width, features}),
                                   view_of(bias, {3 * width}), format);
    x_ = f.activations({rows, features}, random(features, 0.1f));
    qkv_ = f.poisoned({rows, 3 * width});
    std::vector<float> cos = random(heads.dim / 2, 1.0f);
    std::vector<float> sin = cos;
    for (float& angle : cos) angle = std::cos(angle);
    for (float& angle : sin) angle = std::sin(angle);
    cos_ = f.floats({rows, heads.dim / 2}, cos);
    sin_ = f.floats({rows, heads.dim / 2}, sin);
    std::vector<std::int32_t> cu = offsets(lengths);
    seqs_ = f.ints({1}, {static_cast<std::int32_t>(lengths.size())});
    cu.resize(cu.size() + kIdleSequences, -7);
    cu_ = f.ints({static_cast<std::int64_t>(cu.size())}, cu);
    live_ = f.ints({1}, {static_cast<std::int32_t>(live_rows_)});
    out_ = f.poisoned({rows, width});
  }

  void set_scale(float scale) { scale_ = scale; }
  /// From now on heads of q and k are normalised, and those of v where it says so.
  void set_norms(bool of_v = false) {
    std::mt19937_64 generator(3);
    for (Tensor* norm : {&q_norm_, &k_norm_, &v_norm_}) {
      if (norm == &v_norm_ && !of_v) continue;
      *norm = f_.floats({heads_.dim}, normal_values(generator, heads_.dim));
    }
  }

  [[nodiscard]] ops::ProjectedAttentionArgs args() const {
    ops::ProjectedAttentionArgs args{.x = x_.view(),
                                     .projection = projection_,
                                     .qkv = qkv_.view(),
                                     .sequences = {.cu_seqlens = cu_.view(),
                                                   .seqs = OpFixture::live(seqs_),
                                                   .max_seqlen = qkv_.shape[0],
                                                   .rows = OpFixture::live(live_)},
                                     .num_heads = heads_.count,
                                     .head_dim = heads_.dim,
                                     .scale = scale_,
                                     .out = out_.view()};
    if (rotates_) {
      args.cos = cos_.view();
      args.sin = sin_.view();
    }
    args.norms = {
        .q = q_norm_.view(), .k = k_norm_.view(), .v = v_norm_.view(), .epsilon = kEpsilon};
    return args;
  }

  /// The live rows of the result.
  std::vector<float> run() {
    const auto prepare = [&] {
      f_.poison(qkv_);
      f_.poison(out_);
    };
    return f_.run_live(out_, live_rows_ * heads_.width(), prepare,
                       [&](ExecContext& ctx) { ops::projected_attention(ctx, args()); });
  }

  /// The same by ops::linear and ops::head_attention.
  std::vector<float> run_in_two_steps() {
    const auto prepare = [&] {
      f_.poison(qkv_);
      f_.poison(out_);
    };
    return f_.run_live(out_, live_rows_ * heads_.width(), prepare, [&](ExecContext& ctx) {
      ops::linear(ctx, ops::projection_args(args()));
      ops::head_attention(ctx, ops::head_attention_args(args()));
    });
  }

  /// The same by ops::linear, norms and a rotation on the host and ops::attention.
  std::vector<float> run_step_by_step() {
    const auto poison_qkv = [&] { f_.poison(qkv_); };
    std::vector<float> qkv =
        f_.run_live(qkv_, live_rows_ * 3 * heads_.width(), poison_qkv,
                    [&](ExecContext& ctx) { ops::linear(ctx, ops::projection_args(args())); });
    if (q_norm_.view()) normalize(qkv);
    if (rotates_) rotate(qkv);
    qkv = with_idle_rows(std::move(qkv), 3 * heads_.width());
    const auto prepare = [&] {
      f_.write(qkv_, qkv);
      f_.poison(out_);
    };
    return f_.run_live(out_, live_rows_ * heads_.width(), prepare, [&](ExecContext& ctx) {
      const auto heads = ops::head_attention_args(args());
      ops::attention(ctx, ops::attention_args(heads));
    });
  }

 private:
  [[nodiscard]] std::vector<float> with_idle_rows(std::vector<float> values,
                                                  std::int64_t columns) const {
    values.resize(static_cast<std::size_t>((live_rows_ + kIdleRows) * columns),
                  std::numeric_limits<float>::quiet_NaN());
    return values;
  }

  /// Normalises heads of q and k, and of v where it has a norm, rounded before and after they are
  /// multiplied by the weights.
  void normalize(std::vector<float>& qkv) {
    const auto dims = static_cast<std::size_t>(heads_.dim);
    const auto count = static_cast<std::size_t>(heads_.count);
    const auto rows = static_cast<std::size_t>(live_rows_);
    std::vector<std::vector<float>> weights{f_.read(q_norm_), f_.read(k_norm_)};
    if (v_norm_.view()) weights.push_back(f_.read(v_norm_));
    std::vector<float> normed = qkv;
    for (std::size_t head = 0; head < rows * 3 * count; ++head) {
      if (head / count % 3 >= weights.size()) continue;  // of v
      double square = 0;
      for (std::size_t j = head * dims; j < (head + 1) * dims; ++j)
        square += double{qkv[j]} * qkv[j];
      const double root = std::sqrt(square / static_cast<double>(dims) + kEpsilon);
      for (std::size_t j = head * dims; j < (head + 1) * dims; ++j) {
        normed[j] = static_cast<float>(qkv[j] / root);
      }
    }
    normed = f_.rounded(std::move(normed));
    for (std::size_t head = 0; head < rows * 3 * count; ++head) {
      if (head / count % 3 >= weights.size()) continue;
      for (std::size_t j = 0; j < dims; ++j)
        normed[head * dims + j] *= weights[head / count % 3][j];
    }
    qkv = f_.rounded(std::move(normed));
  }

  /// Rotates q and k in f32, the products with sines rounded once more: as GPUs do, to the bit.
  void rotate(std::vector<float>& qkv) {
    const std::vector<float> cos = f_.read(cos_);
    const std::vector<float> sin = f_.read(sin_);
    const std::int64_t half = heads_.dim / 2;
    for (std::int64_t row = 0; row < live_rows_; ++row) {
      for (std::int64_t head = 0; head < 2 * heads_.count; ++head) {
        float* const x =
            &qkv[static_cast<std::size_t>((row * 3 * heads_.count + head) * heads_.dim)];
        for (std::int64_t j = 0; j < half; ++j) {
          const float c = cos[static_cast<std::size_t>(row * half + j)];
          const float s = sin[static_cast<std::size_t>(row * half + j)];
          const float low = x[j];
          const float high = x[j + half];
          const float high_sine = high * s;
          const float low_sine = low * s;
          x[j] = std::fma(low, c, -high_sine);
          x[j + half] = std::fma(high, c, low_sine);
        }
      }
    }
  }

  OpFixture& f_;
  Heads heads_;
  bool rotates_;
  float scale_;
  std::int64_t live_rows_;
  ops::PackedLinear projection_;
  Tensor x_, qkv_, cos_, sin_, cu_, seqs_, live_, out_;
  Tensor q_norm_, k_norm_, v_norm_;  ///< where there are norms
};

}  // namespace fovea::test
