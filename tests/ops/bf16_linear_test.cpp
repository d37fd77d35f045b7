// The bf16 linear layer: every kernel that this machine can run gives the bits of its definition,
// those of AMX and of BFMMLA over emulators everywhere, and layers give the bits of their kernel.
#include "ops/cpu/gemm/gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "core/check.h"
#include "core/float_mode.h"
#include "ops/cpu/gemm/panel_layout.h"
#include "support/emulated_bf16_kernel.h"
#include "support/isa_units.h"
#include "support/naive_ops.h"
#include "support/packed_layer.h"
#include "support/round_to_odd.h"

namespace fovea::test {
namespace {

using ops::Activation;

/// Values of k that panels and prepared rows have whole steps of.
constexpr std::int64_t kStepValues = 32;

float from_bits(std::uint32_t bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

std::uint32_t bits_of(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

const cpu::GemmKernel& portable_bf16() { return cpu::kPortableUnit.kernels.bf16; }

/// Including the kernels that this machine has no use for.
std::vector<cpu::GemmKernel> bf16_kernels() {
  std::vector<cpu::GemmKernel> kernels{emulated_bf16_kernel(), emulated_matrix_kernel()};
  for (const cpu::IsaUnit* const unit : units_of_this_machine())
    if (unit->kernels.bf16.multiply != nullptr) kernels.push_back(unit->kernels.bf16);
  return kernels;
}

/// Kernels sum in one of three orders.
enum class Order { kVdpbf16ps, kTdpbf16ps, kBfmmla };

Order order_of(const cpu::GemmKernel& kernel) {
  const std::string name(kernel.name);
  if (name.starts_with("amx")) return Order::kTdpbf16ps;
  return name.starts_with("neon_bf16") ? Order::kBfmmla : Order::kVdpbf16ps;
}

/// The kernel that needs no instruction and has the bits of this one.
cpu::GemmKernel twin_of(const cpu::GemmKernel& kernel) {
  switch (order_of(kernel)) {
    case Order::kTdpbf16ps: return emulated_bf16_kernel();
    case Order::kBfmmla: return emulated_matrix_kernel();
    case Order::kVdpbf16ps: break;
  }
  return portable_bf16();
}

class Bf16KernelTest : public ::testing::TestWithParam<cpu::GemmKernel> {};

INSTANTIATE_TEST_SUITE_P(Kernels, Bf16KernelTest, ::testing::ValuesIn(bf16_kernels()),
                         [](const auto& suite) { return std::string(suite.param.name); });

/// As a kernel rounds a row, widened again.
std::vector<float> rounded_by(const cpu::GemmKernel& kernel, const std::vector<float>& row) {
  std::vector<std::uint16_t> words(row.size() + 32);
  const auto cols = static_cast<std::int64_t>(row.size());
  auto* const to = reinterpret_cast<std::byte*>(words.data());
  const FloatModeScope mode(kTowerFloatMode);
  kernel.prepare({.x = row.data(),
                  .rows = 1,
                  .cols = cols,
                  .values = to,
                  .stride = 2 * cols + 64,
                  .int8_rows = nullptr});
  std::vector<float> rounded;
  for (std::size_t k = 0; k < row.size(); ++k)
    rounded.push_back(from_bits(static_cast<std::uint32_t>(words[k]) << 16));
  return rounded;
}

TEST_P(Bf16KernelTest, RoundsToNearestEvenAndDenormalNumbersToZero) {
  struct Rounding {
    std::uint32_t from;
    std::uint32_t to;
  };
  const Rounding cases[] = {
      {0x3f800000, 0x3f800000},  // 1
      {0x3f807fff, 0x3f800000},  // just below the middle
      {0x3f808000, 0x3f800000},  // the middle, to even
      {0x3f808001, 0x3f810000},  // just above it
      {0x3f818000, 0x3f820000},  // the middle, to even
      {0xbf818000, 0xbf820000}, {0x3fffffff, 0x40000000},
      {0x7f7f8000, 0x7f800000},  // beyond the largest number
      {0x7f7f7fff, 0x7f7f0000}, {0x7f800000, 0x7f800000},
      {0xff800000, 0xff800000}, {0x00000000, 0x00000000},
      {0x80000000, 0x80000000}, {0x00800000, 0x00800000},  // the smallest normal number
      {0x007fffff, 0x00000000},  // the largest denormal one, not to its neighbour
      {0x807fffff, 0x80000000}, {0x00000001, 0x00000000}};
  std::vector<float> row;
  for (const Rounding& one : cases) row.push_back(from_bits(one.from));
  row.push_back(from_bits(0x7fc00001));
  row.push_back(from_bits(0xff800001));  // NaN in the lower bits only
  const std::vector<float> rounded = rounded_by(GetParam(), row);
  for (std::size_t i = 0; i < std::size(cases); ++i)
    EXPECT_EQ(bits_of(rounded[i]), cases[i].to) << std::hex << cases[i].from;
  EXPECT_TRUE(std::isnan(rounded[std::size(cases)]));
  EXPECT_TRUE(std::isnan(rounded[std::size(cases) + 1]));
}

TEST_P(Bf16KernelTest, FillsTheLastStepOfARowWithZeros) {
  for (std::int64_t cols = 1; cols <= 65; ++cols) {
    const std::vector<float> row(static_cast<std::size_t>(cols), 1.0f);
    const std::int64_t whole = ceil_div(cols, kStepValues) * kStepValues;
    std::vector<std::uint16_t> words(static_cast<std::size_t>(whole + 1), 0xffff);
    auto* const to = reinterpret_cast<std::byte*>(words.data());
    GetParam().prepare({.x = row.data(),
                        .rows = 1,
                        .cols = cols,
                        .values = to,
                        .stride = 2 * whole,
                        .int8_rows = nullptr});
    for (std::int64_t k = 0; k <= whole; ++k) {
      const std::uint16_t want = k < cols ? 0x3f80 : k < whole ? 0 : 0xffff;
      ASSERT_EQ(words[static_cast<std::size_t>(k)], want) << k << " of " << cols;
    }
  }
}

/// Numbers of all signs and of the exponents [first, last] of f32.
Matrix with_exponents(std::int64_t rows, std::int64_t cols, std::uint32_t first, std::uint32_t last,
                      unsigned seed) {
  Matrix matrix(rows, cols);
  std::mt19937 generator(seed);
  for (float& value : matrix.values) {
    const auto exponent = static_cast<std::uint32_t>(first + generator() % (last - first + 1));
    value = from_bits((static_cast<std::uint32_t>(generator()) & 0x807fffffu) | exponent << 23);
  }
  return matrix;
}

/// What a kernel alone makes of a layer, all rows in one task.
/// @param residual of the layer's shape, or null.
Matrix run_bf16(const cpu::GemmKernel& kernel, const Matrix& x, const ops::PackedLinear& packed,
                Activation activation = {}, const Matrix* residual = nullptr) {
  const std::int64_t stride = 2 * x.cols + 128;
  const auto layout = cpu::PanelLayout::of(cpu::GemmFormat::kBf16, packed.dtype);
  const std::byte nan{0xff};
  std::vector<std::byte> values(static_cast<std::size_t>(x.rows * stride), nan);
  Matrix out(x.rows, packed.out_features, kNan);
  const FloatModeScope mode(kTowerFloatMode);
  kernel.prepare({.x = x.values.data(),
                  .rows = x.rows,
                  .cols = x.cols,
                  .values = values.data(),
                  .stride = stride,
                  .int8_rows = nullptr});
  kernel.multiply({.x = values.data(),
                   .x_stride = stride,
                   .int8_rows = nullptr,
                   .rows = x.rows,
                   .panels = packed.weight.data(),
                   .panel_bytes = layout.panel_bytes(x.cols),
                   .row_bytes = layout.row_bytes(),
                   .depth = layout.depth(x.cols),
                   .num_panels = ceil_div(packed.out_features, cpu::kPanelColumns),
                   .bias = reinterpret_cast<const float*>(packed.bias.data()),
                   .int8_columns = nullptr,
                   .int8_stride = 0,
                   .residual = residual == nullptr ? nullptr : residual->values.data(),
                   .residual_stride = out.cols,
                   .activation = activation,
                   .out = out.values.data(),
                   .out_stride = out.cols,
                   .columns = out.cols,
                   .scratch = nullptr});
  return out;
}

Matrix run_bf16(const cpu::GemmKernel& kernel, const Matrix& x, const Stored& weight) {
  LinearBench bench(CpuIsa::kPortable, 1, DType::kBF16);
  return run_bf16(kernel, x, ops::pack_linear(bench.device(), weight.view(), {}));
}

/// As VDPBF16PS: one chain of fused multiply-adds, the second of each pair first.
float sum_of_pairs(const float* x, const float* w, std::int64_t cols) {
  float sum = 0;
  for (std::int64_t k = 0; k < cols; k += 2) {
    if (k + 1 < cols) sum = std::fma(x[k + 1], w[k + 1], sum);
    sum = std::fma(x[k], w[k], sum);
  }
  return sum;
}

/// As TDPBF16PS: of every 32 values, with zeros behind the last, a chain of fused multiply-adds
/// over even k and one over odd k, both from zero.
float sum_of_steps(const float* x, const float* w, std::int64_t cols) {
  float sum = 0;
  for (std::int64_t first = 0; first < cols; first += 32) {
    float chains[2] = {0, 0};
    for (std::int64_t k = first; k < first + 32; ++k) {
      float& chain = chains[k % 2];
      chain = k < cols ? std::fma(x[k], w[k], chain) : std::fma(0.0f, 0.0f, chain);
    }
    sum += chains[0] + chains[1];
  }
  return sum;
}

/// As BFMMLA: pairs of products, with zeros behind the last, and sums that are rounded to odd.
float sum_of_odd_pairs(const float* x, const float* w, std::int64_t cols) {
  float sum = 0;
  for (std::int64_t first = 0; first < cols; first += 4) {
    for (std::int64_t k = first; k < first + 4; k += 2) {
      const float even = k < cols ? multiply_bf16(x[k], w[k]) : 0.0f;
      const float odd = k + 1 < cols ? multiply_bf16(x[k + 1], w[k + 1]) : 0.0f;
      sum = add_to_odd(sum, add_to_odd(even, odd));
    }
  }
  return sum;
}

float sum_in_order(Order order, const float* x, const float* w, std::int64_t cols) {
  switch (order) {
    case Order::kTdpbf16ps: return sum_of_steps(x, w, cols);
    case Order::kBfmmla: return sum_of_odd_pairs(x, w, cols);
    case Order::kVdpbf16ps: break;
  }
  return sum_of_pairs(x, w, cols);
}

/// Expects the bits of what the layer is defined as, without bias.
void expect_definition(const cpu::GemmKernel& kernel, const Matrix& x, const Stored& weight) {
  const std::vector<float> rounded = rounded_by(portable_bf16(), x.values);
  const Matrix out = run_bf16(kernel, x, weight);
  const FloatModeScope mode(kTowerFloatMode);
  for (std::int64_t r = 0; r < x.rows; ++r) {
    for (std::int64_t n = 0; n < out.cols; ++n) {
      const float* const row = &rounded[static_cast<std::size_t>(r * x.cols)];
      const float* const column = &weight.rounded[static_cast<std::size_t>(n * x.cols)];
      const float sum = sum_in_order(order_of(kernel), row, column, x.cols);
      const float want = sum + 0.0f;  // the bias
      const float got = out.at(r, n);
      // Compared as bits: in this mode a denormal number equals 0.
      ASSERT_TRUE(bits_of(got) == bits_of(want) || (std::isnan(got) && std::isnan(want)))
          << r << ", " << n << ": " << got << " instead of " << want;
    }
  }
}

TEST_P(Bf16KernelTest, GivesTheBitsOfItsDefinitionForAllExponents) {
  struct Exponents {
    std::uint32_t first;
    std::uint32_t last;
  };
  constexpr std::int64_t kRows = 29;
  constexpr std::int64_t kIn = 41;
  constexpr std::int64_t kOut = 70;
  const Exponents ranges[] = {{120, 130},            // as in a tower
                              {100, 150}, {50, 72},  // products around 2^-126
                              {0, 70},               // denormal numbers
                              {185, 254},            // overflow
                              {0, 255}};             // everything, infinity and NaN too
  for (const auto& [first, last] : ranges) {
    SCOPED_TRACE(cat("exponents ", first, " to ", last));
    const Matrix x = with_exponents(kRows, kIn, first, last, 1);
    const Stored weight(with_exponents(kOut, kIn, first, last, 2).values, DType::kBF16,
                        {kOut, kIn});
    ASSERT_NO_FATAL_FAILURE(expect_definition(GetParam(), x, weight));
  }
}

TEST_P(Bf16KernelTest, GivesTheBitsOfItsDefinitionForEveryHeightAndEnd) {
  for (const std::int64_t in_features : {1, 31, 32, 33, 64, 301}) {
    const Stored weight = random_weight(33, in_features);
    for (const std::int64_t rows : {1, 15, 16, 17, 31, 32, 33, 56}) {
      SCOPED_TRACE(cat(rows, " x ", in_features));
      const Matrix x = Matrix::random(rows, in_features, 1);
      ASSERT_NO_FATAL_FAILURE(expect_definition(GetParam(), x, weight));
    }
  }
}

TEST_P(Bf16KernelTest, SumsInTheOrderOfItsInstruction) {
  // Products: 2^24 first, then ones, of which 2^24 swallows each that meets it alone.
  Matrix x(1, 34, 0.0f);
  for (const std::int64_t k : {1, 3, 5, 7, 32, 33}) x.at(0, k) = 1.0f;
  std::vector<float> w(34, 1.0f);
  x.at(0, 0) = w[0] = 4096.0f;
  const Matrix out = run_bf16(GetParam(), x, Stored(w, DType::kBF16, {1, 34}));
  const auto want_of = [](Order order) {
    switch (order) {
      case Order::kTdpbf16ps: return 16777222.0f;  // 2^24 + (1 + 1 + 1 + 1), then plus (1 + 1)
      case Order::kBfmmla: return 16777220.0f;  // the first 1 sets the last bit, then plus (1 + 1)
      case Order::kVdpbf16ps: break;
    }
    return 16777216.0f;
  };
  EXPECT_EQ(out.at(0, 0), want_of(order_of(GetParam())));
}

TEST_P(Bf16KernelTest, GivesTheBitsOfARowAloneInABatchOnAnyNumberOfThreadsAndReplayed) {
  constexpr std::int64_t kRows = 150;
  constexpr std::int64_t kOut = 100;
  const Matrix x = Matrix::random(kRows, 70, 1);
  const Stored weight = random_weight(kOut, 70);
  const cpu::GemmKernel kernel = GetParam();
  for (int threads = 1; threads <= 3; ++threads) {
    LinearBench bench(CpuIsa::kPortable, threads, DType::kBF16);
    const auto packed = ops::pack_linear(bench.device(), weight.view(), {});
    Matrix out(kRows, kOut);
    const ops::LinearArgs args{.x = x.view(), .weight = packed, .out = out.view()};
    const Buffer memory =
        bench.device().allocate(cpu::linear_workspace(args, cpu::GemmFormat::kBf16));
    std::memset(memory.data(), 0xff, memory.bytes());  // NaN
    const auto run = [&] {
      cpu::linear(bench.stream(), args, {memory.data(), DType::kU8, {}}, kernel);
    };
    run();
    bench.stream().synchronize();
    const std::vector<float> batch = out.values;
    std::ranges::fill(out.values, kNan);
    const auto graph = bench.stream().capture(run);
    bench.stream().replay(*graph);
    bench.stream().synchronize();
    EXPECT_EQ(out.values, batch);
    for (std::int64_t r = 0; r < kRows; r += 7) {
      Matrix row(1, x.cols);
      std::copy_n(&x.values[static_cast<std::size_t>(r * x.cols)], x.cols, row.values.begin());
      const Matrix alone = run_bf16(kernel, row, packed);
      for (std::int64_t n = 0; n < kOut; ++n)
        ASSERT_EQ(batch[static_cast<std::size_t>(r * kOut + n)], alone.at(0, n)) << r << ", " << n;
    }
  }
}

class Bf16LinearTest : public ::testing::TestWithParam<CpuIsa> {};

INSTANTIATE_TEST_SUITE_P(Isas, Bf16LinearTest, ::testing::ValuesIn(isas_of_this_machine()),
                         [](const auto& suite) { return std::string(to_string(suite.param)); });

struct Bf16Case {
  std::int64_t rows;
  std::int64_t in_features;
  std::int64_t out_features;
  DType stored;
};

TEST_P(Bf16LinearTest, IsTheLayerOfRoundedNumbersForOddShapesAndAllDtypes) {
  const Bf16Case cases[] = {{1, 1, 1, DType::kF32},      {1, 257, 33, DType::kBF16},
                            {2, 5, 31, DType::kF16},     {13, 64, 32, DType::kF32},
                            {15, 19, 96, DType::kBF16},  {29, 512, 65, DType::kF32},
                            {57, 144, 132, DType::kF16}, {127, 643, 1057, DType::kBF16}};
  int next = 0;
  for (const auto& [rows, in_features, out_features, stored] : cases) {
    const Activation activation = kActivations[next++ % std::size(kActivations)];
    SCOPED_TRACE(cat(rows, " x ", in_features, " x ", out_features));
    const Matrix x = Matrix::random(rows, in_features, 1);
    const std::vector<float> rounded_x =
        Stored(x.values, DType::kBF16, {rows, in_features}).rounded;
    const Matrix residual = Matrix::random(rows, out_features, 4);
    const Stored weight(Matrix::random(out_features, in_features, 2).values, stored,
                        {out_features, in_features});
    const std::vector<float> rounded_weight =
        Stored(weight.rounded, DType::kBF16, {out_features, in_features}).rounded;
    const Stored bias(Matrix::random(1, out_features, 3).values, stored, {out_features});
    Bf16Layer layer(GetParam(), weight, &bias, 2);
    ASSERT_EQ(layer.packed().dtype, DType::kBF16);
    Matrix out(rows, out_features, kNan);
    layer.apply(x.view(), out.view(), activation, residual.view());
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t n = 0; n < out_features; ++n) {
        double sum = bias.rounded[static_cast<std::size_t>(n)];
        for (std::int64_t k = 0; k < in_features; ++k)
          sum += double{rounded_x[static_cast<std::size_t>(r * in_features + k)]} *
                 double{rounded_weight[static_cast<std::size_t>(n * in_features + k)]};
        ASSERT_NEAR(out.at(r, n), naive_activation(activation, sum) + residual.at(r, n),
                    2e-5 * (1 + std::abs(sum)))
            << "row " << r << " column " << n;
      }
    }
  }
}

TEST_P(Bf16LinearTest, GivesTheBitsOfItsKernelWithAllActivations) {
  Matrix x = Matrix::random(37, 301, 1);
  for (std::int64_t r = 0; r < 37; ++r)
    for (std::int64_t k = 0; k < 301; ++k)
      x.at(r, k) *= std::pow(10.0f, static_cast<float>(r % 9) - 4.0f);
  const Matrix residual = Matrix::random(37, 77, 4);
  const Stored weight = random_weight(77, 301);
  const Stored bias(Matrix::random(1, 77, 3).values, DType::kF32, {77});
  Bf16Layer layer(GetParam(), weight, &bias);
  const cpu::GemmKernel twin = twin_of(cpu::choose_kernels(cpu::features_up_to(GetParam())).bf16);
  for (const Activation activation : kActivations) {
    const Matrix expected = run_bf16(twin, x, layer.packed(), activation, &residual);
    Matrix out(37, 77);
    layer.apply(x.view(), out.view(), activation, residual.view());
    EXPECT_EQ(out.values, expected.values) << static_cast<int>(activation);
  }
}

TEST_P(Bf16LinearTest, WeightsTakeTwoBytesWhateverTheCheckpointHas) {
  for (const DType stored : {DType::kF32, DType::kF16, DType::kBF16}) {
    const Stored weight(Matrix::random(64, 33, 2).values, stored, {64, 33});
    // 33 values of k are two steps of 32.
    EXPECT_EQ(Bf16Layer(GetParam(), weight, nullptr).packed().weight.bytes(), 64u * 64 * 2);
  }
}

}  // namespace
}  // namespace fovea::test
