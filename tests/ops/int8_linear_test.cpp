// The int8 linear layer, for every instruction set that this machine has: its definition in double
// precision, the same bits from every kernel, batch and number of threads, and sums that do not
// saturate.
#include "ops/cpu/gemm/gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/check.h"
#include "core/float_mode.h"
#include "ops/cpu/gemm/panel_layout.h"
#include "support/expect_error.h"
#include "support/isa_units.h"
#include "support/naive_ops.h"
#include "support/packed_layer.h"

namespace fovea::test {
namespace {

using cpu::kMaxInt8Features;
using ops::Activation;

class Int8LinearTest : public ::testing::TestWithParam<CpuIsa> {};

INSTANTIATE_TEST_SUITE_P(Isas, Int8LinearTest, ::testing::ValuesIn(isas_of_this_machine()),
                         [](const auto& suite) { return std::string(to_string(suite.param)); });

/// Numbers at equal distances, as a row or a column of weights becomes them.
struct Steps {
  double scale;
  double offset;
  std::vector<double> integers;
};

Steps naive_row(const float* x, std::int64_t cols) {
  const float low = std::min(0.0f, *std::min_element(x, x + cols));
  const float width = std::max(0.0f, *std::max_element(x, x + cols)) - low;
  Steps row{width / 255.0f, low, {}};
  const float per_step = width > 0 ? 255.0f / width : 0.0f;
  for (std::int64_t k = 0; k < cols; ++k)
    row.integers.push_back(std::nearbyint((x[k] - low) * per_step));
  return row;
}

Steps naive_column(const float* w, std::int64_t count) {
  const auto [low, high] = std::minmax_element(w, w + count);
  const float middle = *low / 2 + *high / 2;
  const float scale = *high / 254 - *low / 254;
  Steps column{scale, middle, {}};
  for (std::int64_t k = 0; k < count; ++k)
    column.integers.push_back(scale > 0 ? std::nearbyint((w[k] - middle) / scale) : 0);
  return column;
}

/// What the layer is defined as, in double precision.
double sum_of_steps(const Steps& row, const Steps& column) {
  double sum = 0;
  for (std::size_t k = 0; k < row.integers.size(); ++k) {
    sum += (row.offset + row.scale * row.integers[k]) *
           (column.offset + column.scale * column.integers[k]);
  }
  return sum;
}

struct Int8Case {
  std::int64_t rows;
  std::int64_t in_features;
  std::int64_t out_features;
};

TEST_P(Int8LinearTest, IsItsDefinitionForOddShapesAndAllActivations) {
  const Int8Case cases[] = {{1, 1, 1},    {1, 257, 33},  {2, 5, 31},      {13, 64, 32},
                            {15, 19, 96}, {29, 512, 65}, {113, 144, 132}, {127, 643, 45}};
  int next = 0;
  for (const auto& [rows, in_features, out_features] : cases) {
    const Activation activation = kActivations[next++ % std::size(kActivations)];
    SCOPED_TRACE(cat(rows, " x ", in_features, " x ", out_features));
    const Matrix x = Matrix::random(rows, in_features, 1);
    const Matrix residual = Matrix::random(rows, out_features, 4);
    const Stored weight = random_weight(out_features, in_features);
    const Stored bias(Matrix::random(1, out_features, 3).values, DType::kBF16, {out_features});
    Int8Layer layer(GetParam(), weight, &bias, 2);
    ASSERT_EQ(layer.packed().dtype, DType::kI8);
    Matrix out(rows, out_features, kNan);
    layer.apply(x.view(), out.view(), activation, residual.view());
    for (std::int64_t n = 0; n < out_features; ++n) {
      const Steps column = naive_column(weight.rounded.data() + n * in_features, in_features);
      for (std::int64_t r = 0; r < rows; ++r) {
        const double sum =
            sum_of_steps(naive_row(&x.values[static_cast<std::size_t>(r * x.cols)], in_features),
                         column) +
            bias.rounded[static_cast<std::size_t>(n)];
        ASSERT_NEAR(out.at(r, n), naive_activation(activation, sum) + residual.at(r, n),
                    1e-5 * (1 + std::abs(sum)))
            << "row " << r << " column " << n;
      }
    }
  }
}

TEST_P(Int8LinearTest, IsCloseToTheLayerInFloat32) {
  const Matrix x = Matrix::random(20, 512, 1);
  const Stored weight = random_weight(96, 512);
  LinearBench native(GetParam());
  const auto packed = ops::pack_linear(native.device(), weight.view(), {});
  Matrix expected(20, 96);
  native.linear({.x = x.view(), .weight = packed, .out = expected.view()});
  Int8Layer layer(GetParam(), weight, nullptr);
  Matrix out(20, 96);
  layer.apply(x.view(), out.view());
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < out.values.size(); ++i) {
    difference += std::pow(out.values[i] - expected.values[i], 2);
    norm += std::pow(expected.values[i], 2);
  }
  EXPECT_LT(std::sqrt(difference / norm), 0.01);
}

/// Rows of very different sizes, whose activations reach all branches.
Matrix wild_rows(std::int64_t rows, std::int64_t cols) {
  Matrix x = Matrix::random(rows, cols, 5);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < cols; ++c)
      x.at(r, c) *= std::pow(10.0f, static_cast<float>(r % 9) - 4.0f);
  }
  for (std::int64_t r = 0; r < rows; r += 3) {  // outliers, up to more than a row may have
    for (std::int64_t i = 0; i < r; i += 3) x.at(r, (i * 37 + r) % cols) *= i % 2 == 0 ? 90 : -1e4f;
  }
  std::fill_n(x.values.begin(), cols, 3.0f);         // one number only
  std::fill_n(x.values.begin() + cols, cols, 0.0f);  // nothing
  return x;
}

TEST_P(Int8LinearTest, GivesTheBitsOfThePortableKernel) {
  const Matrix x = wild_rows(37, 301);
  const Matrix residual = Matrix::random(37, 77, 4);
  const Stored weight = random_weight(77, 301);
  const Stored bias(Matrix::random(1, 77, 3).values, DType::kF32, {77});
  Int8Layer portable(CpuIsa::kPortable, weight, &bias);
  Int8Layer layer(GetParam(), weight, &bias);
  for (const Activation activation : kActivations) {
    Matrix expected(37, 77);
    portable.apply(x.view(), expected.view(), activation, residual.view());
    Matrix out(37, 77);
    layer.apply(x.view(), out.view(), activation, residual.view());
    EXPECT_EQ(out.values, expected.values) << static_cast<int>(activation);
  }
}

/// Including the kernels that this machine has no use for.
std::vector<cpu::GemmKernel> int8_kernels() {
  std::vector<cpu::GemmKernel> kernels;
  for (const cpu::IsaUnit* const unit : units_of_this_machine())
    if (unit->kernels.int8.multiply != nullptr) kernels.push_back(unit->kernels.int8);
  return kernels;
}

/// What a kernel makes of a layer with these integers, all rows in one task.
Matrix run_int8(const cpu::GemmKernel& kernel, const Matrix& x, const ops::PackedLinear& layer) {
  const std::int64_t stride = (x.cols + 63) / 64 * 64 + 64;
  const std::int64_t panels = ceil_div(layer.out_features, cpu::kPanelColumns);
  const auto layout = cpu::PanelLayout::of(cpu::GemmFormat::kInt8, layer.dtype);
  const auto rows = static_cast<std::size_t>(x.rows);
  std::vector<std::byte> values(rows * static_cast<std::size_t>(stride), std::byte{0xa5});
  std::vector<cpu::Int8Row> int8_rows(rows);
  const FloatModeScope mode(kTowerFloatMode);
  kernel.prepare({.x = x.values.data(),
                  .rows = x.rows,
                  .cols = x.cols,
                  .values = values.data(),
                  .stride = stride,
                  .int8_rows = int8_rows.data()});
  Matrix out(x.rows, layer.out_features, kNan);
  kernel.multiply({.x = values.data(),
                   .x_stride = stride,
                   .int8_rows = int8_rows.data(),
                   .rows = x.rows,
                   .panels = layer.weight.data(),
                   .panel_bytes = layout.panel_bytes(x.cols),
                   .row_bytes = layout.row_bytes(),
                   .depth = layout.depth(x.cols),
                   .num_panels = panels,
                   .bias = reinterpret_cast<const float*>(layer.bias.data()),
                   .int8_columns = reinterpret_cast<const float*>(layer.scale.data()),
                   .int8_stride = panels * cpu::kPanelColumns,
                   .residual = nullptr,
                   .residual_stride = 0,
                   .activation = Activation::kGeluTanh,
                   .out = out.values.data(),
                   .out_stride = out.cols,
                   .columns = out.cols,
                   .scratch = nullptr});
  return out;
}

class Int8KernelTest : public ::testing::TestWithParam<cpu::GemmKernel> {};

INSTANTIATE_TEST_SUITE_P(Kernels, Int8KernelTest, ::testing::ValuesIn(int8_kernels()),
                         [](const auto& suite) { return std::string(suite.param.name); });

TEST_P(Int8KernelTest, GivesTheBitsOfThePortableKernelForEveryHeightAndEnd) {
  for (const std::int64_t in_features : {63, 64, 65, 301}) {
    const Stored weight = random_weight(77, in_features);
    const Int8Layer layer(CpuIsa::kPortable, weight, nullptr);
    for (std::int64_t rows = 2; rows <= 70; ++rows) {
      const Matrix x = wild_rows(rows, in_features);
      ASSERT_EQ(run_int8(GetParam(), x, layer.packed()).values,
                run_int8(cpu::kPortableUnit.kernels.int8, x, layer.packed()).values)
          << rows << " x " << in_features;
    }
  }
}

TEST_P(Int8LinearTest, AFewHugeNumbersLeaveTheStepsOfTheOthersAsTheyAre) {
  Matrix x = Matrix::random(12, 512, 1);
  const Stored weight = random_weight(96, 512);
  Matrix plain(12, 96);
  Int8Layer layer(GetParam(), weight, nullptr);
  layer.apply(x.view(), plain.view());
  for (std::int64_t r = 0; r < 12; ++r) {
    x.at(r, 7) += 300.0f;
    x.at(r, 400 + r) -= 50.0f;
  }
  Matrix out(12, 96);
  layer.apply(x.view(), out.view());
  for (std::int64_t r = 0; r < 12; ++r) {
    for (std::int64_t n = 0; n < 96; ++n) {
      const std::vector<float>& w = weight.rounded;
      const auto at = static_cast<std::size_t>(n * 512);
      const Steps column = naive_column(w.data() + at, 512);
      const auto weight_at = [&](std::int64_t k) {
        return column.offset + column.scale * column.integers[static_cast<std::size_t>(k)];
      };
      const double huge = 300.0 * weight_at(7) - 50.0 * weight_at(400 + r);
      // Steps of 2 / 255 where those up to 300 would be 150 times as large.
      ASSERT_NEAR(out.at(r, n) - huge, plain.at(r, n), 0.5) << r << ", " << n;
    }
  }
}

TEST_P(Int8LinearTest, AWeightThatIsNotANumberReachesItsColumnOnly) {
  const Matrix x = Matrix::random(5, 40, 1);
  const Matrix weights = Matrix::random(3, 40, 2);
  Matrix plain(5, 3);
  const Stored finite(weights.values, DType::kF32, {3, 40});
  Int8Layer(GetParam(), finite, nullptr).apply(x.view(), plain.view());
  for (const float value : {kNan, kInfinity, -kInfinity}) {
    for (const std::int64_t k : {0, 7}) {
      Matrix changed = weights;
      changed.at(1, k) = value;
      const Stored weight(changed.values, DType::kF32, {3, 40});
      Matrix out(5, 3);
      Int8Layer(GetParam(), weight, nullptr).apply(x.view(), out.view());
      for (std::int64_t r = 0; r < 5; ++r) {
        EXPECT_EQ(out.at(r, 0), plain.at(r, 0));
        EXPECT_TRUE(std::isnan(out.at(r, 1))) << value << " at " << k << " gave " << out.at(r, 1);
        EXPECT_EQ(out.at(r, 2), plain.at(r, 2));
      }
    }
  }
}

TEST_P(Int8LinearTest, SumsOfTheLargestProductsDoNotSaturate) {
  for (const std::int64_t in_features : {std::int64_t{15000}, kMaxInt8Features}) {
    // 255 * 127 in every place but one: 4 of them exceed 16 bits, all of them reach 2.1e9. There
    // the weight is the only other one, so that the rest are 127 steps from the middle.
    std::vector<float> weights(static_cast<std::size_t>(2 * in_features), 1.0f);
    weights[3] = weights[static_cast<std::size_t>(in_features + 3)] = -1.0f;
    const Stored weight(weights, DType::kF32, {2, in_features});
    Int8Layer layer(GetParam(), weight, nullptr);
    ASSERT_EQ(layer.packed().dtype, DType::kI8);
    Matrix x(1, in_features, 255.0f);
    x.at(0, 3) = 0.0f;
    Matrix out(1, 2);
    layer.apply(x.view(), out.view());
    const auto expected = static_cast<float>(255 * (in_features - 1));
    EXPECT_NEAR(out.at(0, 0), expected, 1e-6 * expected);
  }
}

TEST_P(Int8LinearTest, LayersTooLongForSumsOf32BitsStayFloat32) {
  const std::int64_t in_features = kMaxInt8Features + 1;
  const Stored weight(std::vector<float>(static_cast<std::size_t>(in_features), 1.0f), DType::kF32,
                      {1, in_features});
  EXPECT_EQ(Int8Layer(GetParam(), weight, nullptr).packed().dtype, DType::kF32);
}

}  // namespace
}  // namespace fovea::test
