#include "fovea/tower/core/tensor_view.h"

#include <gtest/gtest.h>

#include <array>

#include "support/expect_error.h"

namespace fovea {
namespace {

TEST(TensorView, WithoutDataIsAbsent) {
  EXPECT_FALSE(TensorView{});
  EXPECT_FALSE(ConstTensorView{});
}

TEST(TensorView, CountsBytes) {
  EXPECT_EQ((ConstTensorView{nullptr, DType::kBF16, {3, 5}}).bytes(), 30u);
  EXPECT_EQ((TensorView{nullptr, DType::kI64, {3}}).bytes(), 24u);
  EXPECT_EQ((TensorView{nullptr, DType::kF32, {0, 5}}).bytes(), 0u);
}

TEST(TensorView, WritesThroughToWhatItRefersTo) {
  std::array<std::int32_t, 4> values{1, 2, 3, 4};
  const TensorView view{reinterpret_cast<std::byte*>(values.data()), DType::kI32, {4}};
  view.as<std::int32_t>()[2] = 7;
  EXPECT_EQ(values[2], 7);
  const ConstTensorView read_only = view;
  EXPECT_EQ(read_only.as<std::int32_t>(), values.data());
  EXPECT_EQ(read_only.dtype, DType::kI32);
  EXPECT_EQ(read_only.shape, (Shape{4}));
}

TEST(TensorView, ReshapesToAsManyElements) {
  std::array<float, 6> values{};
  const TensorView view{reinterpret_cast<std::byte*>(values.data()), DType::kF32, {2, 3}};
  const TensorView other = view.reshaped({3, 2});
  EXPECT_EQ(other.shape, (Shape{3, 2}));
  EXPECT_EQ(other.data, view.data);
  EXPECT_EQ(other.dtype, view.dtype);
}

TEST(TensorView, RefusesToReshapeToAnotherNumberOfElements) {
  const TensorView view{nullptr, DType::kF32, {2, 3}};
  test::expect_error(ErrorCode::kInternal, "cannot view [2, 3] as [2, 4]", [&] {
    (void)view.reshaped({2, 4});
  });
}

}  // namespace
}  // namespace fovea
