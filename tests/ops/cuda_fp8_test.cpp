// Quantized linear layers on a GPU: every kernel for E4M3, made to run by a file of choices,
// against double precision over the numbers that quantization leaves; two layers in a row; what is
// not finite. Skipped where there is no GPU that runs our kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "core/check.h"
#include "fovea/tower/ops/activate.h"
#include "fovea/tower/ops/linear.h"
#include "fovea/tower/ops/norm.h"
#include "ops/cuda_gemm_fixture.h"
#include "ops/projected_attention_steps.h"
#include "ops/quantized.h"
#include "support/expect_error.h"
#include "support/naive_ops.h"

namespace fovea::test {
namespace {

using ops::Activation;
using ops::WeightFormat;

/// The formats of GEMMs in the file of choices.
constexpr int kFp8 = 1;
constexpr int kFp8ToFp8 = 2;

const std::vector<Kernel>& fp8_kernels() {
  static const std::vector<Kernel> all{{.name = "fp8 64x64"},
                                       {.name = "fp8 128x64 by 2x1"},
                                       {.name = "fp8 128x72 by 1x2"},
                                       {.name = "fp8 128x128 by 2x1"},
                                       {.name = "fp8 128x144 by 2x1"},
                                       {.name = "fp8 192x144 by 1x2"},
                                       {.name = "fp8 192x192 by 1x2"},
                                       {.name = "fp8 128x144 by 2x1 alternating"},
                                       {.name = "fp8 64x32 split", .splits = {2, 3}},
                                       {.name = "fp8 64x64 split", .splits = {2, 3}},
                                       {.name = "fp8 128x64 by 2x1 split", .splits = {2, 3}}};
  return all;
}

constexpr const char* kToFp8[] = {"fp8 64x32 to fp8", "fp8 64x64 to fp8",
                                  "fp8 128x128 by 2x1 to fp8",
                                  "fp8 128x144 by 2x1 alternating to fp8"};

bool fp8_accepts(const Kernel& kernel, const GemmCase& c) {
  return suits_fp8(c) && (!c.residual || !kernel.name.ends_with("alternating"));
}

using CudaFp8Test = CudaGemmTest;

TEST_F(CudaFp8Test, EveryKernelComputesEveryCase) {
  std::vector<Operands> operands;
  for (const GemmCase& c : cases()) operands.push_back(make_operands(c, WeightFormat::kFp8));
  for (const Kernel& kernel : fp8_kernels()) {
    for (const int splits : kernel.splits) {
      SCOPED_TRACE(cat(kernel.name, " with ", splits, " splits"));
      std::string choices = header();
      for (const GemmCase& c : cases())
        if (fp8_accepts(kernel, c)) choices += choice_line(c, kernel.name, splits, 0, kFp8);
      write_text(path(), choices);
      OpFixture f(case_with_choices(folder()));
      for (std::size_t i = 0; i < cases().size(); ++i) {
        if (fp8_accepts(kernel, cases()[i]))
          check(f, cases()[i], operands[i], By::kOwnKernel, WeightFormat::kFp8);
      }
      EXPECT_EQ(read_text(path()), choices) << "another kernel was measured and kept";
    }
  }
}

TEST_F(CudaFp8Test, EveryKernelForHeadsBringsThemWhereAttentionReadsThem) {
  struct HeadKernel {
    const char* name;
    int head_dim;
  };
  constexpr HeadKernel kKernels[] = {{"fp8 128x216 by 1x2, heads of 72", 72},
                                     {"fp8 128x192 by 2x1, heads of 64", 64}};
  const std::vector<std::int32_t> lengths{1, 24, 0, 145, 130, 361};
  for (const HeadKernel& kernel : kKernels) {
    for (const bool rotates : {true, false}) {
      SCOPED_TRACE(cat(kernel.name, ", rotates ", rotates));
      const Heads heads{4, kernel.head_dim};
      const GemmCase gemm{.rows = offsets(lengths).back() + ProjectedAttention::kIdleRows,
                          .in_features = ProjectedAttention::kFp8Features,
                          .out_features = 3 * heads.width()};
      // Sums of all tiles have the same order, so a plain kernel gives the same bits.
      const std::string choices = header() + choice_line(gemm, "fp8 128x128 by 2x1", 1, 0, kFp8) +
                                  choice_line(gemm, kernel.name, 1, kernel.head_dim, kFp8);
      write_text(path(), choices);
      OpFixture f(case_with_choices(folder()));
      ProjectedAttention attention(f, heads, lengths, rotates, WeightFormat::kFp8);
      const std::vector<float> fused = attention.run();
      EXPECT_FALSE(std::ranges::any_of(fused, [](float v) { return std::isnan(v); }));
      expect_same_bits(fused, attention.run_step_by_step());
      EXPECT_EQ(read_text(path()), choices);
    }
  }
}

/// Two layers with random weights and what they must give.
struct Layers {
  GemmCase first;
  GemmCase second;
  Operands one;
  Operands two;
  std::vector<double> want;  ///< [rows, second.out_features]
};

/// The first layer's result is rounded to E4M3, each row with the scale of a bound that is known
/// before it (src/ops/cuda/gemm/gemm.h).
Layers make_layers(std::int64_t rows, std::int64_t features, std::int64_t wide,
                   Activation activation) {
  constexpr float kNormMargin = 1.07f;
  Layers l;
  l.first = {.rows = rows, .in_features = features, .out_features = wide, .activation = activation};
  l.second = {.rows = rows, .in_features = wide, .out_features = features, .residual = true};
  l.one = make_operands(l.first, WeightFormat::kFp8);
  l.two = make_operands(l.second);
  const std::vector<double> weight = through_fp8(l.one.weight, features, true);
  double largest_row = 0;
  for (std::int64_t n = 0; n < wide; ++n) {
    double square = 0;
    for (std::int64_t k = 0; k < features; ++k)
      square += std::pow(weight[static_cast<std::size_t>(n * features + k)], 2);
    largest_row = std::max(largest_row, std::sqrt(square));
  }
  float largest_bias = 0;
  for (const float b : l.one.bias) largest_bias = std::max(largest_bias, std::abs(b));
  const std::vector<double> second = through_fp8(l.two.weight, wide, true);
  for (std::int64_t r = 0; r < rows; ++r) {
    double square = 0;
    for (std::int64_t k = 0; k < features; ++k)
      square += std::pow(l.one.x[static_cast<std::size_t>(r * features + k)], 2);
    const double bound = kNormMargin * std::sqrt(square) * largest_row + largest_bias;
    std::vector<double> hidden;
    for (std::int64_t n = 0; n < wide; ++n) {
      const double value = l.one.want[static_cast<std::size_t>(r * wide + n)];
      EXPECT_LE(std::abs(value), bound);
      const std::uint8_t bits = f32_to_e4m3(static_cast<float>(value * kMaxE4M3 / bound));
      hidden.push_back(e4m3_to_f32(bits) * bound / kMaxE4M3);
    }
    for (std::int64_t n = 0; n < features; ++n) {
      double sum = l.two.bias[static_cast<std::size_t>(n)] +
                   l.two.residual[static_cast<std::size_t>(r * features + n)];
      for (std::int64_t k = 0; k < wide; ++k)
        sum += hidden[static_cast<std::size_t>(k)] * second[static_cast<std::size_t>(n * wide + k)];
      l.want.push_back(sum);
    }
  }
  return l;
}

/// Runs them as one op. Rows from `live` on hold NaN, if there is a count.
std::vector<float> run(OpFixture& f, const Layers& l, std::optional<std::int32_t> live = {}) {
  const auto pack = [&](const GemmCase& c, const Operands& o) {
    return ops::pack_linear(f.device(), view_of(o.weight, {c.out_features, c.in_features}),
                            view_of(o.bias, {c.out_features}), WeightFormat::kFp8);
  };
  const ops::PackedLinear fc1 = pack(l.first, l.one);
  const ops::PackedLinear fc2 = pack(l.second, l.two);
  const std::int64_t rows = l.first.rows;
  std::vector<float> values = l.one.x;
  std::fill(values.begin() + live.value_or(static_cast<std::int32_t>(rows)) * l.first.in_features,
            values.end(), kPoison);
  const Tensor x = f.activations({rows, l.first.in_features}, values);
  const Tensor wide = f.poisoned({rows, l.first.out_features});
  const Tensor out = f.poisoned({rows, l.second.out_features});
  const Tensor count = f.ints({1}, {live.value_or(0)});
  return f.run(
      out, [&] { f.write(out, l.two.residual); },
      [&](ExecContext& ctx) {
        ctx.is_recorded = true;  // a choice that is refused would be measured again, and kept
        ops::mlp(ctx, {.x = x.view(),
                       .fc1 = fc1,
                       .fc2 = fc2,
                       .activation = l.first.activation,
                       .residual = out.view(),
                       .rows = live ? OpFixture::live(count) : LiveRows{},
                       .wide = wide.view(),
                       .out = out.view()});
      });
}

/// Of what a layer gives for rows that were rounded to E4M3 on the way, relative to the norm. A sum
/// in f32 that falls on the other side of a rounding to E4M3 changes a hidden number by 2^-3 of it;
/// one in a thousand does.
constexpr double kMaxMlpError = 8e-3;

double relative_error(const std::vector<float>& got, const std::vector<double>& want) {
  double error = 0;
  double norm = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    error += std::pow(got[i] - want[i], 2);
    norm += std::pow(want[i], 2);
  }
  return std::sqrt(error / norm);
}

TEST_F(CudaFp8Test, EveryKernelHandsQuantizedRowsToTheNextLayer) {
  for (const auto& [rows, features, wide] :
       {std::array<std::int64_t, 3>{1, 144, 528}, {65, 1152, 304}, {300, 256, 4304}}) {
    for (const Activation activation : {Activation::kGeluTanh, Activation::kNone}) {
      const Layers l = make_layers(rows, features, wide, activation);
      for (const char* kernel : kToFp8) {
        SCOPED_TRACE(cat(kernel, ", ", rows, " x ", features, " x ", wide));
        const std::string choices = header() + choice_line(l.first, kernel, 1, 0, kFp8ToFp8) +
                                    choice_line(l.second, "fp8 64x64", 1, 0, kFp8);
        write_text(path(), choices);
        OpFixture f(case_with_choices(folder()));
        EXPECT_LE(relative_error(run(f, l), l.want), kMaxMlpError);
        EXPECT_EQ(read_text(path()), choices);
      }
    }
  }
}

/// As rms_norm() rounds: to bf16 before the weight.
std::vector<double> rms_norm_rounded_within(const std::vector<float>& x,
                                            const std::vector<float>& weight, double epsilon) {
  const std::size_t cols = weight.size();
  const std::vector<float> ones(cols, 1.0f);
  std::vector<double> normed = naive_rms_norm(
      x, {static_cast<std::int64_t>(x.size() / cols), static_cast<std::int64_t>(cols)}, ones,
      epsilon);
  for (std::size_t i = 0; i < normed.size(); ++i)
    normed[i] = double{bf16_to_f32(f32_to_bf16(static_cast<float>(normed[i])))} * weight[i % cols];
  return normed;
}

/// A layer of E4M3, and what it gives for rows that are rounded to E4M3.
ops::PackedLinear pack_fp8(OpFixture& f, const GemmCase& c, const Operands& o) {
  return ops::pack_linear(f.device(), view_of(o.weight, {c.out_features, c.in_features}),
                          view_of(o.bias, {c.out_features}), WeightFormat::kFp8);
}
std::vector<double> through_layer(const std::vector<float>& rows, const GemmCase& c,
                                  const Operands& o) {
  const std::int64_t cols = c.in_features;
  const std::vector<double> x = through_fp8(rows, cols, false);
  const std::vector<double> w = through_fp8(o.weight, cols, true);
  std::vector<double> results;
  for (std::int64_t r = 0; r < c.rows; ++r) {
    for (std::int64_t n = 0; n < c.out_features; ++n) {
      double sum = o.bias[static_cast<std::size_t>(n)];
      for (std::int64_t k = 0; k < cols; ++k)
        sum +=
            x[static_cast<std::size_t>(r * cols + k)] * w[static_cast<std::size_t>(n * cols + k)];
      results.push_back(sum);
    }
  }
  return results;
}

TEST_F(CudaFp8Test, NormsHandQuantizedRowsToTheNextLayer) {
  constexpr std::int64_t kCols = 272;
  constexpr float kEpsilon = 1e-6f;
  OpFixture f(case_with_choices(folder()));
  std::mt19937_64 generator(3);
  const std::vector<float> gamma = normal_values(generator, kCols);
  const std::vector<float> beta = normal_values(generator, kCols);
  const Tensor weight = f.floats({kCols}, gamma);
  const Tensor bias = f.floats({kCols}, beta);
  for (const std::int64_t rows : {3, 1600}) {  // a block per row, and a warp
    for (const bool centred : {true, false}) {
      SCOPED_TRACE(cat(rows, " rows, centred ", centred));
      const GemmCase c{.rows = rows, .in_features = kCols, .out_features = 64};
      const Operands o = make_operands(c);
      const std::vector<double> normed =
          centred ? naive_layer_norm(o.x, {rows, kCols}, gamma, beta, kEpsilon)
                  : rms_norm_rounded_within(o.x, gamma, kEpsilon);
      const std::vector<double> want = through_layer({normed.begin(), normed.end()}, c, o);
      const ops::PackedLinear layer = pack_fp8(f, c, o);
      const Tensor in = f.activations({rows, kCols}, o.x);
      const Tensor out = f.poisoned({rows, c.out_features});
      const std::vector<float> got = f.run(out, [&](ExecContext& ctx) {
        const Arena::Scope scope(ctx.arena);
        const TensorView quantized = ops::quantized_tensor(ctx.arena, {rows, kCols});
        if (centred) {
          ops::layer_norm(ctx, {.x = in.view(),
                                .weight = weight.view(),
                                .bias = bias.view(),
                                .epsilon = kEpsilon,
                                .out = quantized});
        } else {
          ops::rms_norm(
              ctx,
              {.x = in.view(), .weight = weight.view(), .epsilon = kEpsilon, .out = quantized});
        }
        ops::linear(ctx, {.x = quantized, .weight = layer, .out = out.view()});
      });
      EXPECT_LE(relative_error(got, want), kMaxMlpError);
    }
  }
}

TEST_F(CudaFp8Test, AGatedActivationHandsQuantizedRowsToTheNextLayer) {
  constexpr float kLimit = 1.5f;
  OpFixture f(case_with_choices(folder()));
  for (const auto& size :
       {std::array<std::int64_t, 2>{3, 272}, {200, 3424}, {5, 16}, {2200, 144}}) {
    const std::int64_t rows = size[0];
    const std::int64_t cols = size[1];
    SCOPED_TRACE(cat(rows, " x ", cols));
    std::mt19937_64 generator(static_cast<std::uint64_t>(cols));
    const std::vector<float> x = f.rounded(normal_values(generator, rows * 2 * cols));
    std::vector<float> gated;
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < cols; ++c) {
        const double gate = std::min(x[static_cast<std::size_t>(r * 2 * cols + c)], kLimit);
        const float up = x[static_cast<std::size_t>(r * 2 * cols + cols + c)];
        gated.push_back(static_cast<float>(naive_activation(Activation::kSilu, gate) *
                                           std::clamp(up, -kLimit, kLimit)));
      }
    }
    const GemmCase c{.rows = rows, .in_features = cols, .out_features = 64};
    const Operands o = make_operands(c);
    const std::vector<double> want = through_layer(gated, c, o);
    const ops::PackedLinear layer = pack_fp8(f, c, o);
    const Tensor in = f.activations({rows, 2 * cols}, x);
    const Tensor out = f.poisoned({rows, c.out_features});
    const std::vector<float> got = f.run(out, [&](ExecContext& ctx) {
      const Arena::Scope scope(ctx.arena);
      const TensorView quantized = ops::quantized_tensor(ctx.arena, {rows, cols});
      ops::gated(ctx, {.x = in.view(), .limit = kLimit, .out = quantized});
      ops::linear(ctx, {.x = quantized, .weight = layer, .out = out.view()});
    });
    EXPECT_LE(relative_error(got, want), kMaxMlpError);
  }
}

TEST_F(CudaFp8Test, RowsThatAreNotLiveAreNeitherReadNorWritten) {
  const Layers l = make_layers(200, 256, 528, Activation::kGeluErf);
  OpFixture f(case_with_choices(folder()));
  const std::vector<float> whole = run(f, l);
  const std::vector<float> part = run(f, l, 130);
  const std::size_t live = 130 * 256;
  EXPECT_TRUE(std::equal(part.begin(), part.begin() + live, whole.begin()));
  EXPECT_TRUE(std::equal(part.begin() + live, part.end(), l.two.residual.begin() + live));
}

TEST_F(CudaFp8Test, AMeasuredChoiceIsCloseToTheLayerThatIsNotQuantized) {
  OpFixture f(case_with_choices(folder()));
  const GemmCase c{.rows = 777, .in_features = 1152, .out_features = 3456};
  const Operands native = make_operands(c);
  const Operands quantized = make_operands(c, WeightFormat::kFp8);
  check(f, c, quantized, By::kMeasuredChoice, WeightFormat::kFp8);
  // Both operands are rounded to 4 bits, by up to 2^-4 and on average 2.6 %, of numbers whose signs
  // are random: the error of the sum is that of one number, times the root of two.
  std::vector<float> got(quantized.want.begin(), quantized.want.end());
  EXPECT_LE(relative_error(got, native.want), 0.045);
}

TEST_F(CudaFp8Test, ARowOfZerosGivesTheBiasAndOneThatIsNotFiniteStaysSo) {
  OpFixture f(case_with_choices(folder()));
  const GemmCase c{.rows = 4, .in_features = 128, .out_features = 64};
  const Operands o = make_operands(c);
  const ops::PackedLinear weight = ops::pack_linear(f.device(), view_of(o.weight, {64, 128}),
                                                    view_of(o.bias, {64}), WeightFormat::kFp8);
  EXPECT_EQ(weight.dtype, DType::kF8E4M3);
  EXPECT_EQ(weight.weight.bytes(), 64u * 128u);
  std::vector<float> values = o.x;
  std::fill_n(values.begin(), 128, 0.0f);
  values[128 + 7] = kNan;
  values[256 + 9] = -kInfinity;
  const Tensor x = f.activations({4, 128}, values);
  const Tensor out = f.poisoned({4, 64});
  const std::vector<float> got = f.run(out, [&](ExecContext& ctx) {
    ops::linear(ctx, {.x = x.view(), .weight = weight, .out = out.view()});
  });
  EXPECT_TRUE(std::equal(o.bias.begin(), o.bias.end(), got.begin()));
  const auto is_finite = [](float value) { return std::isfinite(value); };
  EXPECT_TRUE(std::none_of(got.begin() + 64, got.begin() + 192, is_finite));
  EXPECT_TRUE(std::all_of(got.begin() + 192, got.end(), is_finite));
}

TEST_F(CudaFp8Test, LayersThatDoNotSuitTheKernelsAreNotQuantized) {
  OpFixture f(case_with_choices(folder()));
  const std::vector<float> values(40 * 24, 0.5f);
  for (const Shape& shape : {Shape{40, 16}, Shape{32, 24}}) {
    const auto packed =
        ops::pack_linear(f.device(), view_of(values, shape), {}, WeightFormat::kFp8);
    EXPECT_EQ(packed.dtype, DType::kBF16);
  }
}

TEST_F(CudaFp8Test, Int8WeightsAreForTheCpu) {
  OpFixture f(case_with_choices(folder()));
  const std::vector<float> values(64 * 128, 0.5f);
  expect_error(ErrorCode::kUnsupported, "int8 weights are for the CPU; a GPU has fp8", [&] {
    (void)ops::pack_linear(f.device(), view_of(values, {64, 128}), {}, WeightFormat::kInt8);
  });
}

}  // namespace
}  // namespace fovea::test
