// The checks that op functions share.
#include "ops/arg_check.h"

#include "core/check.h"

namespace fovea::ops {

namespace {

void check_memory(const char* op, const char* name, const ConstTensorView& tensor) {
  FOVEA_CHECK(tensor.data != nullptr || tensor.shape.elements() == 0, kInvalidArgument, op, ": ",
              name, " of shape ", tensor.shape, " has no memory");
}

}  // namespace

void check_tensor(const char* op, const char* name, const ConstTensorView& tensor, DType dtype,
                  const Shape& shape) {
  FOVEA_CHECK(tensor.dtype == dtype && tensor.shape == shape, kInvalidArgument, op, ": ", name,
              " must be ", to_string(dtype), ' ', shape, ", got ", to_string(tensor.dtype), ' ',
              tensor.shape);
  check_memory(op, name, tensor);
}

void check_activation(const char* op, const char* name, const ConstTensorView& tensor, int rank) {
  const DType dtype = tensor.dtype;
  FOVEA_CHECK(dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16,
              kInvalidArgument, op, ": ", name, " must be float32, float16 or bfloat16, got ",
              to_string(dtype));
  FOVEA_CHECK(tensor.shape.rank() == rank, kInvalidArgument, op, ": ", name, " must have rank ",
              rank, ", got shape ", tensor.shape);
  FOVEA_CHECK(rank < 2 || tensor.shape[rank - 1] > 0, kInvalidArgument, op, ": ", name,
              " must have columns, got shape ", tensor.shape);
  check_memory(op, name, tensor);
}

void check_layer_input(const char* op, const ConstTensorView& x, const PackedLinear& layer) {
  if (x.dtype == DType::kF8E4M3 && layer.dtype == DType::kF8E4M3 && x.shape.rank() == 2) {
    check_memory(op, "x", x);
  } else {
    check_activation(op, "x", x, 2);
  }
  FOVEA_CHECK(x.shape[1] == layer.in_features, kInvalidArgument, op, ": x must be [rows, ",
              layer.in_features, "], got ", x.shape);
}

void check_result(const char* op, const TensorView& out, DType dtype, const Shape& shape) {
  check_tensor(op, "out", out, out.dtype == DType::kF8E4M3 ? out.dtype : dtype, shape);
}

void check_disjoint(const char* op, const char* name, const ConstTensorView& tensor,
                    const char* other_name, const ConstTensorView& other) {
  const bool overlap =
      tensor.data < other.data + other.bytes() && other.data < tensor.data + tensor.bytes();
  FOVEA_CHECK(!overlap, kInvalidArgument, op, ": ", name, " and ", other_name, " must not overlap");
}

}  // namespace fovea::ops
