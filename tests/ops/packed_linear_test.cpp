// What holds for a linear layer on the CPU whatever its GEMM multiplies, for every instruction set
// that this machine has.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "support/packed_layer.h"

namespace fovea::test {
namespace {

using ops::Activation;

enum class Multiplies { kFloat32, kBFloat16, kInt8 };

const char* name_of(Multiplies format) {
  switch (format) {
    case Multiplies::kFloat32: return "float32";
    case Multiplies::kBFloat16: return "bfloat16";
    case Multiplies::kInt8: return "int8";
  }
  return "";
}

class PackedLinearTest : public ::testing::TestWithParam<std::tuple<Multiplies, CpuIsa>> {
 protected:
  /// A layer of random weights without bias.
  static std::unique_ptr<PackedLayer> layer(std::int64_t out_features, std::int64_t in_features,
                                            int threads = 1) {
    const Stored weight = random_weight(out_features, in_features);
    const CpuIsa isa = std::get<CpuIsa>(GetParam());
    switch (std::get<Multiplies>(GetParam())) {
      case Multiplies::kFloat32:
        return std::make_unique<Float32Layer>(isa, weight, nullptr, threads);
      case Multiplies::kBFloat16: return std::make_unique<Bf16Layer>(isa, weight, nullptr, threads);
      case Multiplies::kInt8: return std::make_unique<Int8Layer>(isa, weight, nullptr, threads);
    }
    return nullptr;
  }
};

INSTANTIATE_TEST_SUITE_P(Formats, PackedLinearTest,
                         ::testing::Combine(::testing::Values(Multiplies::kFloat32,
                                                              Multiplies::kBFloat16,
                                                              Multiplies::kInt8),
                                            ::testing::ValuesIn(isas_of_this_machine())),
                         [](const auto& suite) {
                           return std::string(name_of(std::get<0>(suite.param))) + "_" +
                                  std::string(to_string(std::get<1>(suite.param)));
                         });

TEST_P(PackedLinearTest, RowsHaveTheSameBitsAloneAndInAnyBatchOnAnyNumberOfThreads) {
  constexpr std::int64_t kRows = 400;
  constexpr std::int64_t kIn = 303;
  constexpr std::int64_t kOut = 160;
  Matrix x = Matrix::random(kRows, kIn, 1);
  Matrix alone(kRows, kOut);
  const auto single = layer(kOut, kIn);
  for (std::int64_t r = 0; r < kRows; ++r) {
    const TensorView row{reinterpret_cast<std::byte*>(&x.at(r, 0)), DType::kF32, {1, kIn}};
    const TensorView to{reinterpret_cast<std::byte*>(&alone.at(r, 0)), DType::kF32, {1, kOut}};
    single->apply(row, to, Activation::kGeluTanh);
  }
  std::vector<std::int64_t> counts{111, 112, 113, 255, 256, 257, kRows};
  for (std::int64_t count = 1; count <= 30; ++count) counts.push_back(count);
  for (int threads = 1; threads <= 4; ++threads) {
    const auto together = layer(kOut, kIn, threads);
    for (const std::int64_t count : counts) {
      Matrix out(count, kOut);
      together->apply(x.first_rows(count), out.view(), Activation::kGeluTanh);
      ASSERT_EQ(
          std::memcmp(out.values.data(), alone.values.data(), out.values.size() * sizeof(float)), 0)
          << count << " rows on " << threads << " threads";
    }
  }
}

TEST_P(PackedLinearTest, ReplayReadsTheLiveCountAnewAndTouchesNoOtherRow) {
  constexpr std::int64_t kCapacity = 60;
  const auto layer = PackedLinearTest::layer(50, 33, 2);
  Matrix x = Matrix::random(kCapacity, 33, 1);
  Matrix whole(kCapacity, 50);
  layer->apply(x.view(), whole.view());

  std::int32_t live = 0;
  Matrix captured_x = x;
  Matrix out(kCapacity, 50);
  const auto graph = layer->stream().capture(
      [&] { layer->apply(captured_x.view(), out.view(), {}, {}, {&live}); });
  for (const std::int32_t count : {5, 60, 0, 1, 59}) {
    live = count;
    captured_x = x;
    std::fill(captured_x.values.begin() + count * 33, captured_x.values.end(), kNan);
    std::ranges::fill(out.values, -3.0f);
    layer->stream().replay(*graph);
    for (std::int64_t r = 0; r < kCapacity; ++r) {
      for (std::int64_t c = 0; c < 50; ++c)
        ASSERT_EQ(out.at(r, c), r < count ? whole.at(r, c) : -3.0f) << count << ": " << r;
    }
  }
}

TEST_P(PackedLinearTest, WritesOnlyItsColumnsOfAWiderOutput) {
  const Matrix x = Matrix::random(19, 40, 1);
  const auto layer = PackedLinearTest::layer(45, 40);
  Matrix alone(19, 45);
  layer->apply(x.view(), alone.view());
  Matrix wide(19, 100, 7.0f);
  layer->apply(x.view(), wide.view(), {}, {}, {}, 33);
  for (std::int64_t r = 0; r < 19; ++r) {
    for (std::int64_t c = 0; c < 100; ++c) {
      const bool written = c >= 33 && c < 33 + 45;
      ASSERT_EQ(wide.at(r, c), written ? alone.at(r, c - 33) : 7.0f) << r << ", " << c;
    }
  }
}

TEST_P(PackedLinearTest, ARowWithAnInfinityOrNanChangesNoOtherRow) {
  const Matrix x = Matrix::random(20, 41, 1);
  Matrix dirty_x = x;
  dirty_x.at(3, 40) = kNan;
  dirty_x.at(9, 0) = kInfinity;
  dirty_x.at(11, 40) = -kInfinity;
  const bool steps_are_nan = std::get<Multiplies>(GetParam()) == Multiplies::kInt8;
  const auto layer = PackedLinearTest::layer(64, 41);
  for (const Activation activation :
       {Activation::kNone, Activation::kGeluTanh, Activation::kGeluErf, Activation::kQuickGelu,
        Activation::kSilu, Activation::kRelu2}) {
    Matrix clean(20, 64);
    layer->apply(x.view(), clean.view(), activation);
    Matrix dirty(20, 64);
    layer->apply(dirty_x.view(), dirty.view(), activation);
    for (std::int64_t r = 0; r < 20; ++r) {
      for (std::int64_t c = 0; c < 64; ++c) {
        const float value = dirty.at(r, c);
        if (r == 3) {
          ASSERT_TRUE(std::isnan(value));
        } else if (r != 9 && r != 11) {
          ASSERT_EQ(value, clean.at(r, c)) << r;
        } else if (steps_are_nan) {
          ASSERT_TRUE(std::isnan(value)) << r;
        } else {  // W x is +-infinity; every activation but none maps minus to NaN
          ASSERT_FALSE(std::isfinite(value)) << r;
        }
      }
    }
  }
}

}  // namespace
}  // namespace fovea::test
