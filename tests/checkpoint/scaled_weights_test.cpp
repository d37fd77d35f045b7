#include "checkpoint/scaled_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "fovea/tower/checkpoint/weight_source.h"
#include "fovea/tower/core/dtype.h"
#include "support/temporary_directory.h"

namespace fovea::checkpoint {
namespace {

using Sizes = std::vector<std::int64_t>;

constexpr std::uint8_t kOne = 0x38;  // 1.0 as E4M3
constexpr std::uint8_t kMinusTwo = 0xc0;
constexpr std::uint8_t kNaN = 0x7f;

void expect_block(const Sizes& weight, const Sizes& scales, std::int64_t rows, std::int64_t cols) {
  const auto block = scale_block(weight, scales);
  ASSERT_TRUE(block);
  EXPECT_EQ(block->rows, rows);
  EXPECT_EQ(block->cols, cols);
}

TEST(ScaleBlock, IsAllOfTheWeight) {
  for (const Sizes& scales : {Sizes{}, {1}, {1, 1}}) expect_block({300, 130}, scales, 300, 130);
}

TEST(ScaleBlock, IsARow) {
  for (const Sizes& scales : {Sizes{300}, {300, 1}}) expect_block({300, 130}, scales, 1, 130);
}

TEST(ScaleBlock, HasSidesOf128) { expect_block({300, 130}, {3, 2}, 128, 128); }

TEST(ScaleBlock, IsNoneForOtherShapes) {
  for (const Sizes& scales : {Sizes{2}, {130}, {1, 300}, {2, 3}, {3, 1}, {3, 2, 1}, {0}, {300, 2}})
    EXPECT_FALSE(scale_block({300, 130}, scales));
  for (const Sizes& weight : {Sizes{300}, {3, 10, 10}, {}, {0, 4}, {4, 0}})
    EXPECT_FALSE(scale_block(weight, {1}));
}

TEST(ScaleWeights, MultipliesEveryBlockByItsScale) {
  constexpr std::int64_t kRows = 130;
  constexpr std::int64_t kCols = 260;
  std::vector<std::byte> bits(kRows * kCols, std::byte{kOne});
  bits[129 * kCols + 259] = std::byte{kMinusTwo};
  bits[0] = std::byte{kNaN};
  const std::vector<float> scales{1, 2, 3, 4, 5, 6};
  std::vector<float> out(bits.size());
  scale_weights(bits, kCols, {128, 128}, scales, out);
  EXPECT_TRUE(std::isnan(out[0]));
  EXPECT_EQ(out[1], 1);
  EXPECT_EQ(out[128], 2);
  EXPECT_EQ(out[127 * kCols + 256], 3);
  EXPECT_EQ(out[128 * kCols], 4);
  EXPECT_EQ(out[128 * kCols + 255], 5);
  EXPECT_EQ(out[129 * kCols + 259], -12);
}

/// A file with a matrix [2, 3] of E4M3 and a tensor beside it.
class ScaledSource : public ::testing::Test {
 protected:
  template <class Number>
  WeightSource with(const std::string& name, const Shape& shape, DType dtype,
                    const std::vector<Number>& scales) {
    const std::vector<OutputTensor> tensors{
        {"w.weight", {reinterpret_cast<const std::byte*>(bits_.data()), DType::kF8E4M3, {2, 3}}},
        {name, {reinterpret_cast<const std::byte*>(scales.data()), dtype, shape}}};
    write_safetensors(folder_ / "model.safetensors", tensors, {});
    return WeightSource::open(folder_.path());
  }
  static std::vector<float> numbers(const WeightSource& source) {
    const ConstTensorView view = source.tensor("w.weight", {2, 3});
    EXPECT_EQ(view.dtype, DType::kF32);
    EXPECT_EQ(view.shape, Shape({2, 3}));
    std::vector<float> values(6);
    std::memcpy(values.data(), view.data, view.bytes());
    return values;
  }

  const test::TemporaryDirectory folder_;
  const std::vector<std::uint8_t> bits_{kOne, kOne, kMinusTwo, kMinusTwo, 0, kOne};
};

TEST_F(ScaledSource, MultipliesByTheScalesOfRows) {
  const WeightSource source = with<float>("w.weight_scale", {2, 1}, DType::kF32, {0.5f, 3.0f});
  EXPECT_EQ(source.listing("w.weight")->dtype, "F8_E4M3");
  EXPECT_EQ(source.listing("w.weight")->scales, "w.weight_scale");
  EXPECT_EQ(numbers(source), (std::vector<float>{0.5f, 0.5f, -1, -6, 0, 3}));
}

TEST_F(ScaledSource, MultipliesByOneScaleOfBf16) {
  const WeightSource source =
      with<std::uint16_t>("w.weight_scale_inv", {1, 1}, DType::kBF16, {0x4040});  // 3
  EXPECT_EQ(numbers(source), (std::vector<float>{3, 3, -6, -6, 0, 3}));
}

TEST_F(ScaledSource, TakesNoScalesThatDoNotFit) {
  EXPECT_EQ(with<float>("w.weight_scale", {3}, DType::kF32, {1, 1, 1}).listing("w.weight")->scales,
            "");
  EXPECT_EQ(with<std::int32_t>("w.weight_scale", {1}, DType::kI32, {1}).listing("w.weight")->scales,
            "");
  const WeightSource without = with<float>("other.weight_scale", {1}, DType::kF32, {1});
  EXPECT_EQ(without.listing("w.weight")->scales, "");
  EXPECT_EQ(without.tensor("w.weight", {2, 3}).dtype, DType::kF8E4M3) << "the bits as they are";
}

}  // namespace
}  // namespace fovea::checkpoint
