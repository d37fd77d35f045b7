#pragma once

// GEMMs on a GPU that a file of choices assigns to a kernel: their operands, what they must give,
// and how they are run and compared.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <ostream>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "core/check.h"
#include "device/cuda_plugin.h"
#include "fovea/tower/ops/linear.h"
#include "support/naive_ops.h"
#include "support/op_fixture.h"

namespace fovea::test {

/// Of the norm of a result. Rounding it to bf16 costs up to 2^-9 of every number, 1.1e-3 on average
/// over mantissas; sums of f32 and the fast exponentials are far below.
inline constexpr double kMaxError = 4e-3;

struct GemmCase {
  std::int64_t rows;
  std::int64_t in_features;
  std::int64_t out_features;
  ops::Activation activation = ops::Activation::kNone;
  bool bias = true;
  bool residual = false;
  std::int64_t column = 0;  ///< of a wider output; otherwise a residual is added in place
  std::optional<std::int32_t> live = {};
};

inline void PrintTo(const GemmCase& c, std::ostream* out) {
  *out << c.rows << " x " << c.in_features << " to " << c.out_features << ", activation "
       << static_cast<int>(c.activation) << ", residual " << c.residual << ", live "
       << c.live.value_or(-1);
}

/// Rows around the edges of tiles; columns and sums with tails; every epilogue.
inline const std::vector<GemmCase>& cases() {
  using ops::Activation;
  static const std::vector<GemmCase> all{
      {.rows = 1, .in_features = 512, .out_features = 64},
      {.rows = 7, .in_features = 528, .out_features = 144, .activation = Activation::kGeluTanh},
      {.rows = 63, .in_features = 1152, .out_features = 432, .residual = true},
      {.rows = 64, .in_features = 1536, .out_features = 72, .bias = false},
      {.rows = 65, .in_features = 4304, .out_features = 40, .residual = true},
      {.rows = 127, .in_features = 520, .out_features = 304, .activation = Activation::kGeluErf},
      {.rows = 128, .in_features = 576, .out_features = 200, .activation = Activation::kQuickGelu},
      {.rows = 129, .in_features = 1152, .out_features = 8, .activation = Activation::kSilu},
      {.rows = 150, .in_features = 512, .out_features = 1152, .residual = true, .column = 24},
      {.rows = 40, .in_features = 640, .out_features = 4304, .activation = Activation::kGeluTanh},
      {.rows = 1025, .in_features = 528, .out_features = 96, .residual = true},
      {.rows = 300, .in_features = 512, .out_features = 264, .residual = true, .live = 130},
      {.rows = 300, .in_features = 520, .out_features = 136, .live = 1},
      {.rows = 200, .in_features = 512, .out_features = 64, .column = 8, .live = 0},
      {.rows = 513,
       .in_features = 576,
       .out_features = 168,
       .activation = Activation::kGeluErf,
       .residual = true,
       .column = 16,
       .live = 512}};
  return all;
}
inline constexpr std::size_t kWithResidual = 2;  // of cases()

inline std::int64_t width_of(const GemmCase& c) {
  return c.column == 0 ? c.out_features : c.column + c.out_features + 8;
}

/// Whether a case is computed with quantized weights if they are asked for.
inline bool suits_fp8(const GemmCase& c) {
  return c.in_features % 16 == 0 && c.out_features % 16 == 0;
}

/// Every row divided by max |row| / 448, rounded to E4M3, and multiplied again. Weights are
/// divided, rows of x multiplied by the inverse.
inline std::vector<double> through_fp8(std::span<const float> values, std::int64_t cols,
                                       bool is_weight) {
  std::vector<double> result;
  for (std::size_t first = 0; first < values.size(); first += static_cast<std::size_t>(cols)) {
    const auto row = values.subspan(first, static_cast<std::size_t>(cols));
    float largest = 0;
    for (const float value : row) largest = std::max(largest, std::abs(value));
    const float scale = largest > 0 ? largest / kMaxE4M3 : 1.0f;
    const float inverse = 1.0f / scale;
    for (const float value : row) {
      const std::uint8_t bits = f32_to_e4m3(is_weight ? value / scale : value * inverse);
      result.push_back(double{e4m3_to_f32(bits)} * scale);
    }
  }
  return result;
}

/// The random operands of a case, as the GPU rounds them, and the result in double precision. They
/// are computed once: every kernel is asked for the same.
struct Operands {
  std::vector<float> x, weight, bias, residual;
  std::vector<double> want;  ///< [rows, out_features]
};

inline std::vector<float> random_bf16(std::mt19937_64& generator, std::int64_t count, float scale) {
  std::vector<float> values = normal_values(generator, count);
  for (float& value : values) value = bf16_to_f32(f32_to_bf16(value * scale));
  return values;
}

inline Operands make_operands(const GemmCase& c,
                              ops::WeightFormat format = ops::WeightFormat::kNative) {
  std::mt19937_64 generator(static_cast<std::uint64_t>(c.rows * 7919 + c.out_features));
  Operands o;
  o.x = random_bf16(generator, c.rows * c.in_features, 1.0f);
  o.weight = random_bf16(generator, c.out_features * c.in_features,
                         1.0f / std::sqrt(static_cast<float>(c.in_features)));
  o.bias = random_bf16(generator, c.out_features, 1.0f);
  o.residual = random_bf16(generator, c.rows * c.out_features, 1.0f);
  const bool is_fp8 = format == ops::WeightFormat::kFp8;
  const std::vector<double> x =
      is_fp8 ? through_fp8(o.x, c.in_features, false) : std::vector<double>(o.x.begin(), o.x.end());
  const std::vector<double> weight = is_fp8 ? through_fp8(o.weight, c.in_features, true)
                                            : std::vector<double>(o.weight.begin(), o.weight.end());
  const auto depth = static_cast<std::size_t>(c.in_features);
  for (std::size_t r = 0; r < static_cast<std::size_t>(c.rows); ++r) {
    for (std::size_t n = 0; n < static_cast<std::size_t>(c.out_features); ++n) {
      double sum = c.bias ? o.bias[n] : 0.0;
      for (std::size_t k = 0; k < depth; ++k) sum += x[r * depth + k] * weight[n * depth + k];
      const double added = c.residual ? double{o.residual[o.want.size()]} : 0.0;
      o.want.push_back(naive_activation(c.activation, sum) + added);
    }
  }
  return o;
}

/// Of cases()[number].
inline const Operands& operands_of(std::size_t number) {
  static const std::vector<Operands> all = [] {
    std::vector<Operands> made;
    for (const GemmCase& c : cases()) made.push_back(make_operands(c));
    return made;
  }();
  return all[number];
}

/// The GPU, or so many of its SMs, with choices of GEMM kernels kept in a folder.
inline OpCase case_with_choices(const std::string& folder, int sm_budget = 0) {
  const CudaDeviceOptions options{.index = usable_gpus(find_cuda()).at(0),
                                  .attention = CudaAttention::kHopper,
                                  .sm_budget = sm_budget,
                                  .cache_dir = folder};
  return {{.name = "cuda",
           .dtypes = {DType::kBF16},
           .exact_rows = false,
           .make =
               [options](int) {
                 return DeviceUnderTest{nullptr, make_cuda_device(find_cuda(), options)};
               }},
          DType::kBF16};
}

/// Who computes a case: our kernels leave out rows that are not live, algorithms of the library do
/// not, and a measurement may choose either.
enum class By : std::uint8_t { kOwnKernel, kMeasuredChoice };

/// Rehearses a case, which measures it if nothing fits that the file says, and records it.
inline void check(OpFixture& f, const GemmCase& c, const Operands& o, By by = By::kMeasuredChoice,
                  ops::WeightFormat format = ops::WeightFormat::kNative) {
  SCOPED_TRACE(::testing::PrintToString(c));
  const ops::PackedLinear packed =
      ops::pack_linear(f.device(), view_of(o.weight, {c.out_features, c.in_features}),
                       c.bias ? view_of(o.bias, {c.out_features}) : ConstTensorView{}, format);
  const std::int64_t width = width_of(c);
  const std::int64_t live = c.live.value_or(static_cast<std::int32_t>(c.rows));
  std::vector<float> x = o.x;
  std::fill(x.begin() + live * c.in_features, x.end(), kPoison);
  const Tensor in = f.activations({c.rows, c.in_features}, x);
  const Tensor added = f.activations({c.rows, c.out_features}, o.residual);
  const Tensor out = f.poisoned({c.rows, width});
  const Tensor count = f.ints({1}, {static_cast<std::int32_t>(live)});
  const bool in_place = c.residual && c.column == 0;
  const auto got = f.run(
      out, [&] { in_place ? f.write(out, o.residual) : f.poison(out); },
      [&](ExecContext& ctx) {
        ctx.is_recorded = true;
        ops::linear(ctx, {.x = in.view(),
                          .weight = packed,
                          .activation = c.activation,
                          .residual = !c.residual ? ConstTensorView{}
                                      : in_place  ? ConstTensorView(out.view())
                                                  : ConstTensorView(added.view()),
                          .rows = c.live ? OpFixture::live(count) : LiveRows{},
                          .out = out.view(),
                          .out_column = c.column});
      });

  double error = 0;
  double norm = 0;
  for (std::int64_t r = 0; r < c.rows; ++r) {
    for (std::int64_t n = 0; n < width; ++n) {
      const float value = got[static_cast<std::size_t>(r * width + n)];
      const std::int64_t col = n - c.column;
      const auto place = static_cast<std::size_t>(r * c.out_features + col);
      if (r >= live && by == By::kMeasuredChoice) continue;
      if (r >= live || col < 0 || col >= c.out_features) {
        const float before = in_place ? o.residual[place] : kPoison;
        ASSERT_EQ(std::bit_cast<std::uint32_t>(value), std::bit_cast<std::uint32_t>(before))
            << "row " << r << " column " << n << " was written";
        continue;
      }
      error += (value - o.want[place]) * (value - o.want[place]);
      norm += o.want[place] * o.want[place];
    }
  }
  EXPECT_LE(std::sqrt(error), kMaxError * std::sqrt(norm));
}

/// The line of a choices file that makes `kernel` compute a case; see
/// src/ops/cuda/gemm/choices.cpp.
inline std::string choice_line(const GemmCase& c, const std::string& kernel, int splits,
                               int head_dim = 0, int format = 0) {
  return cat(c.rows, ' ', c.in_features, ' ', c.out_features, ' ', width_of(c), ' ',
             static_cast<int>(c.activation), ' ', c.bias ? 1 : 0, ' ', c.residual ? 1 : 0, ' ',
             head_dim, ' ', format, " 16 own ", splits, ' ', kernel, '\n');
}

}  // namespace fovea::test
