// The complaints of op functions: what was expected, what came, and of which tensor.
#include "ops/arg_check.h"

#include <gtest/gtest.h>

#include <array>

#include "support/expect_error.h"

namespace fovea::ops {
namespace {

using test::expect_error;

class ArgCheck : public ::testing::Test {
 protected:
  [[nodiscard]] ConstTensorView view(DType dtype, const Shape& shape, std::size_t offset = 0) {
    return {memory_.data() + offset, dtype, shape};
  }
  std::array<std::byte, 256> memory_{};
};

TEST_F(ArgCheck, OfATensorNamesDtypeAndShape) {
  const ConstTensorView x = view(DType::kF32, {2, 3});
  EXPECT_NO_THROW(check_tensor("op", "x", x, DType::kF32, {2, 3}));
  expect_error(ErrorCode::kInvalidArgument, "op: x must be float32 [2, 4], got float32 [2, 3]",
               [&] {
                 check_tensor("op", "x", x, DType::kF32, {2, 4});
               });
  expect_error(ErrorCode::kInvalidArgument, "op: x must be int32 [2, 3], got float32 [2, 3]", [&] {
    check_tensor("op", "x", x, DType::kI32, {2, 3});
  });
}

TEST_F(ArgCheck, OfATensorAsksForMemoryWhereThereAreElements) {
  EXPECT_NO_THROW(check_tensor("op", "x", {nullptr, DType::kF32, {0, 3}}, DType::kF32, {0, 3}));
  expect_error(ErrorCode::kInvalidArgument, "op: x of shape [1, 3] has no memory", [] {
    check_tensor("op", "x", {nullptr, DType::kF32, {1, 3}}, DType::kF32, {1, 3});
  });
}

TEST_F(ArgCheck, OfAnActivationTakesFloatsOfOneRank) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    EXPECT_NO_THROW(check_activation("op", "x", view(dtype, {2, 3}), 2));
  }
  expect_error(ErrorCode::kInvalidArgument, "op: x must be float32, float16 or bfloat16, got int32",
               [&] {
                 check_activation("op", "x", view(DType::kI32, {2, 3}), 2);
               });
  expect_error(ErrorCode::kInvalidArgument, "op: x must have rank 2, got shape [3]",
               [&] { check_activation("op", "x", view(DType::kF32, {3}), 2); });
  expect_error(ErrorCode::kInvalidArgument, "op: x must have columns, got shape [2, 0]", [&] {
    check_activation("op", "x", view(DType::kF32, {2, 0}), 2);
  });
}

TEST_F(ArgCheck, OfTheInputOfALayerComparesFeatures) {
  PackedLinear layer;
  layer.in_features = 3;
  EXPECT_NO_THROW(check_layer_input("op", view(DType::kF32, {2, 3}), layer));
  expect_error(ErrorCode::kInvalidArgument, "op: x must be [rows, 3], got [2, 4]", [&] {
    check_layer_input("op", view(DType::kF32, {2, 4}), layer);
  });
  expect_error(ErrorCode::kInvalidArgument, "must be float32, float16 or bfloat16", [&] {
    check_layer_input("op", view(DType::kF8E4M3, {2, 3}), layer);
  });
  layer.dtype = DType::kF8E4M3;
  EXPECT_NO_THROW(check_layer_input("op", view(DType::kF8E4M3, {2, 3}), layer));
}

TEST_F(ArgCheck, OfOverlapLooksAtBytes) {
  const ConstTensorView x = view(DType::kF32, {2, 3});
  EXPECT_NO_THROW(check_disjoint("op", "out", view(DType::kF32, {2, 3}, 24), "x", x));
  expect_error(ErrorCode::kInvalidArgument, "op: out and x must not overlap", [&] {
    check_disjoint("op", "out", view(DType::kF32, {2, 3}, 20), "x", x);
  });
}

}  // namespace
}  // namespace fovea::ops
