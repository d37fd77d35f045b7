// Layers against their formulas in double precision.
#include "models/common/layers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "device/cpu/cpu_device.h"
#include "ops/cpu/cpu_kernels.h"
#include "support/naive_ops.h"

namespace fovea::common {
namespace {

using Floats = std::vector<float>;

constexpr std::int64_t kRows = 6;
constexpr std::int64_t kFeatures = 16;
constexpr std::int64_t kWide = 24;
constexpr std::int64_t kHeads = 2;
constexpr std::int64_t kHeadDim = kFeatures / kHeads;
constexpr double kTolerance = 1e-5;  // f32 sums of at most 24 terms of order 1, five in a chain

/// Weights of one layer of each kind on the host, and the same layer on the device.
struct HostLinear {
  Floats weight;
  Floats bias;
};

Floats narrow(const std::vector<double>& values) { return {values.begin(), values.end()}; }

ConstTensorView view_of(const Floats& values, const Shape& shape) {
  return {reinterpret_cast<const std::byte*>(values.data()), DType::kF32, shape};
}

TensorView view_of(Floats& values, const Shape& shape) {
  return {reinterpret_cast<std::byte*>(values.data()), DType::kF32, shape};
}

/// W x + b of every row.
std::vector<double> naive_linear(const Floats& x, const HostLinear& layer) {
  const std::size_t out = layer.bias.size();
  const std::size_t in = layer.weight.size() / out;
  std::vector<double> y;
  for (std::size_t row = 0; row < x.size() / in; ++row) {
    for (std::size_t n = 0; n < out; ++n) {
      double sum = layer.bias[n];
      for (std::size_t k = 0; k < in; ++k) {
        sum += double{x[row * in + k]} * double{layer.weight[n * in + k]};
      }
      y.push_back(sum);
    }
  }
  return y;
}

std::vector<double> naive_mlp(const Floats& x, const HostLinear& fc1, const HostLinear& fc2,
                              ops::Activation activation) {
  std::vector<double> wide = naive_linear(x, fc1);
  for (double& value : wide) value = test::naive_activation(activation, value);
  return naive_linear(narrow(wide), fc2);
}

void add_to(Floats& x, const std::vector<double>& values) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(double{x[i]} + values[i]);
}

void expect_near(const Floats& got, const Floats& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], kTolerance) << i;
}

class LayersTest : public ::testing::Test {
 protected:
  Floats random(std::int64_t count) {
    std::normal_distribution<float> normal(0.0f, 0.5f);
    Floats values(static_cast<std::size_t>(count));
    for (float& value : values) value = normal(generator_);
    return values;
  }
  HostLinear random_linear(std::int64_t in, std::int64_t out) {
    return {random(in * out), random(out)};
  }
  ops::PackedLinear pack(const HostLinear& layer) {
    const auto out = static_cast<std::int64_t>(layer.bias.size());
    const auto in = static_cast<std::int64_t>(layer.weight.size()) / out;
    return ops::pack_linear(*device_, view_of(layer.weight, {out, in}), view_of(layer.bias, {out}));
  }
  Tensor on_device(const Floats& values) {
    return upload(*device_, *stream_, view_of(values, {static_cast<std::int64_t>(values.size())}));
  }

  std::mt19937_64 generator_{5};
  std::unique_ptr<Kernels> kernels_ = make_cpu_kernels(detect_cpu_isa());
  std::unique_ptr<Device> device_ = make_cpu_device(1, *kernels_);
  std::unique_ptr<Stream> stream_ = device_->create_stream();
  Buffer memory_ = device_->allocate(1 << 20);
  Arena arena_{memory_.data(), memory_.bytes()};
  ExecContext ctx_{*stream_, *kernels_, arena_, *stream_};
};

TEST_F(LayersTest, ABlockAddsAttentionAndThenAnMlpToItsRows) {
  const HostLinear qkv = random_linear(kFeatures, 3 * kFeatures);
  const HostLinear proj = random_linear(kFeatures, kFeatures);
  const HostLinear fc1 = random_linear(kFeatures, kWide);
  const HostLinear fc2 = random_linear(kWide, kFeatures);
  const Floats weight1 = random(kFeatures);
  const Floats bias1 = random(kFeatures);
  const Floats weight2 = random(kFeatures);
  const Floats bias2 = random(kFeatures);
  const Floats angles = random(kRows * kHeadDim / 2);
  Floats cos;
  Floats sin;
  for (const float angle : angles) {
    cos.push_back(std::cos(angle));
    sin.push_back(std::sin(angle));
  }
  const std::vector<std::int32_t> cu_seqlens{0, 4, 6};
  const Floats before = random(kRows * kFeatures);

  // x += proj(attention(rope(qkv(norm1(x))))); x += fc2(gelu(fc1(norm2(x))))
  const test::Grid shape{kRows, kFeatures};
  Floats want = before;
  Floats projected =
      narrow(naive_linear(narrow(test::naive_layer_norm(want, shape, weight1, bias1, 1e-3)), qkv));
  projected = narrow(test::naive_rope(projected, cos, sin, kHeads, kHeadDim));
  const double scale = 1 / std::sqrt(static_cast<double>(kHeadDim));
  add_to(want,
         naive_linear(narrow(test::naive_attention(projected, cu_seqlens, kHeads, kHeadDim, scale)),
                      proj));
  add_to(want, naive_mlp(narrow(test::naive_layer_norm(want, shape, weight2, bias2, 1e-3)), fc1,
                         fc2, ops::Activation::kQuickGelu));

  const Block block{
      .norm1 = {on_device(weight1), on_device(bias1), 1e-3f},
      .norm2 = {on_device(weight2), on_device(bias2), 1e-3f},
      .attn = {.qkv = pack(qkv), .proj = pack(proj), .num_heads = kHeads},
      .mlp = {.fc1 = pack(fc1), .fc2 = pack(fc2), .activation = ops::Activation::kQuickGelu}};
  Floats got = before;
  const AttendedRows rows{
      .sequences = {.cu_seqlens = {reinterpret_cast<const std::byte*>(cu_seqlens.data()),
                                   DType::kI32,
                                   {3}},
                    .max_seqlen = kRows},
      .cos = view_of(cos, {kRows, kHeadDim / 2}),
      .sin = view_of(sin, {kRows, kHeadDim / 2})};
  add_block(ctx_, block, rows, view_of(got, {kRows, kFeatures}));
  stream_->synchronize();
  expect_near(got, want);
}

TEST_F(LayersTest, ABlockIsMadeOfAnyNormAndMlp) {
  const HostLinear qkv = random_linear(kFeatures, 3 * kFeatures);
  const HostLinear proj = random_linear(kFeatures, kFeatures);
  const HostLinear gate_up = random_linear(kFeatures, 2 * kWide);
  const HostLinear down = random_linear(kWide, kFeatures);
  const Floats weight1 = random(kFeatures);
  const Floats weight2 = random(kFeatures);
  const std::vector<std::int32_t> cu_seqlens{0, 4, 6};
  const Floats before = random(kRows * kFeatures);

  // x += proj(attention(qkv(norm1(x)))); x += down(silu(gate(norm2(x))) * up(norm2(x)))
  const test::Grid shape{kRows, kFeatures};
  Floats want = before;
  const Floats projected =
      narrow(naive_linear(narrow(test::naive_rms_norm(want, shape, weight1, 1e-3)), qkv));
  const double scale = 1 / std::sqrt(static_cast<double>(kHeadDim));
  add_to(want,
         naive_linear(narrow(test::naive_attention(projected, cu_seqlens, kHeads, kHeadDim, scale)),
                      proj));
  const std::vector<double> both =
      naive_linear(narrow(test::naive_rms_norm(want, shape, weight2, 1e-3)), gate_up);
  Floats wide;
  for (std::int64_t row = 0; row < kRows; ++row) {
    for (std::int64_t c = 0; c < kWide; ++c) {
      const auto at = static_cast<std::size_t>(row * 2 * kWide + c);
      wide.push_back(static_cast<float>(test::naive_activation(ops::Activation::kSilu, both[at]) *
                                        both[at + static_cast<std::size_t>(kWide)]));
    }
  }
  add_to(want, naive_linear(wide, down));

  struct {
    RmsNorm norm1;
    RmsNorm norm2;
    Attention attn;
    GatedMlp mlp;
  } const block{.norm1 = {on_device(weight1), 1e-3f},
                .norm2 = {on_device(weight2), 1e-3f},
                .attn = {.qkv = pack(qkv), .proj = pack(proj), .num_heads = kHeads},
                .mlp = {.gate_up = pack(gate_up), .down = pack(down)}};
  Floats got = before;
  const AttendedRows rows{
      .sequences = {
          .cu_seqlens = {reinterpret_cast<const std::byte*>(cu_seqlens.data()), DType::kI32, {3}},
          .max_seqlen = kRows}};
  add_block(ctx_, block, rows, view_of(got, {kRows, kFeatures}));
  stream_->synchronize();
  expect_near(got, want);
}

TEST_F(LayersTest, AttentionAndNormsAddToAResidualIfThereIsOne) {
  const Shape shape{kRows, kFeatures};
  const Attention layer{.qkv = pack(random_linear(kFeatures, 3 * kFeatures)),
                        .proj = pack(random_linear(kFeatures, kFeatures)),
                        .num_heads = kHeads};
  const LayerNorm layer_norm{on_device(random(kFeatures)), on_device(random(kFeatures)), 1e-3f};
  const std::vector<std::int32_t> cu_seqlens{0, kRows};
  const AttendedRows rows{
      .sequences = {
          .cu_seqlens = {reinterpret_cast<const std::byte*>(cu_seqlens.data()), DType::kI32, {2}},
          .max_seqlen = kRows}};
  const Floats x = random(kRows * kFeatures);
  const Floats residual = random(kRows * kFeatures);
  const auto expect_added = [&](const auto& run) {
    Floats want(x.size());
    Floats got(x.size());
    run(ConstTensorView{}, view_of(want, shape));
    run(view_of(residual, shape), view_of(got, shape));
    stream_->synchronize();
    for (std::size_t i = 0; i < want.size(); ++i) want[i] += residual[i];
    expect_near(got, want);
  };
  expect_added([&](ConstTensorView added, TensorView out) {
    attend(ctx_, layer, rows, view_of(x, shape), added, out);
  });
  expect_added([&](ConstTensorView added, TensorView out) {
    norm(ctx_, layer_norm, view_of(x, shape), {}, out, added);
  });
}

TEST_F(LayersTest, AnMlpWritesItsColumnsAlone) {
  const HostLinear fc1 = random_linear(kFeatures, kWide);
  const HostLinear fc2 = random_linear(kWide, kFeatures);
  const Floats x = random(kRows * kFeatures);
  const Floats want = narrow(naive_mlp(x, fc1, fc2, ops::Activation::kGeluErf));
  const Mlp layer{.fc1 = pack(fc1), .fc2 = pack(fc2), .activation = ops::Activation::kGeluErf};
  Floats wide(kRows * kWide);
  Floats out(3 * kRows * kFeatures, 7.0f);
  mlp(ctx_, layer, {}, view_of(x, {kRows, kFeatures}), view_of(wide, {kRows, kWide}),
      view_of(out, {kRows, 3 * kFeatures}), kFeatures);
  stream_->synchronize();
  for (std::size_t row = 0; row < kRows; ++row) {
    for (std::size_t c = 0; c < 3 * kFeatures; ++c) {
      const bool inside = c >= kFeatures && c < 2 * kFeatures;
      const float expected = inside ? want[row * kFeatures + c - kFeatures] : 7.0f;
      ASSERT_NEAR(out[row * 3 * kFeatures + c], expected, kTolerance) << row << ", " << c;
    }
  }
}

TEST_F(LayersTest, AConvolutionSumsOverTheNeighboursThatThereAre) {
  // Two grids of 4 x 4, 2 channels in, 3 out, stride 2. The weight is [out, tap, channel].
  constexpr std::int64_t kSide = 4;
  const Floats x = random(2 * kSide * kSide * 2);
  const HostLinear weight{random(3 * 9 * 2), Floats(3)};
  Floats want;
  for (std::int64_t grid = 0; grid < 2; ++grid) {
    for (std::int64_t oy = 0; oy < 2; ++oy) {
      for (std::int64_t ox = 0; ox < 2; ++ox) {
        for (std::int64_t n = 0; n < 3; ++n) {
          double sum = 0;
          for (std::int64_t tap = 0; tap < 9; ++tap) {
            const std::int64_t iy = 2 * oy + tap / 3 - 1;
            const std::int64_t ix = 2 * ox + tap % 3 - 1;
            if (iy < 0 || iy >= kSide || ix < 0 || ix >= kSide) continue;
            for (std::int64_t c = 0; c < 2; ++c) {
              const auto from =
                  static_cast<std::size_t>(((grid * kSide + iy) * kSide + ix) * 2 + c);
              const auto at = static_cast<std::size_t>((n * 9 + tap) * 2 + c);
              sum += double{x[from]} * double{weight.weight[at]};
            }
          }
          want.push_back(static_cast<float>(sum));
        }
      }
    }
  }
  const Conv3x3 layer{.weight = pack(weight), .stride = 2};
  Floats got(want.size());
  conv3x3(ctx_, layer, view_of(x, {2 * kSide * kSide, 2}), kSide, {}, view_of(got, {2 * 4, 3}));
  stream_->synchronize();
  expect_near(got, want);
}

}  // namespace
}  // namespace fovea::common
