#pragma once

#include "fovea/tower/core/tensor_view.h"
#include "fovea/tower/ops/linear.h"

namespace fovea::ops {

/// The width of a head is a multiple of this.
inline constexpr std::int64_t kHeadDimMultiple = 8;

/// Complaints of the op functions, all in one form: "<op>: <tensor> must be ..., got ...".
/// Each throws Error(kInvalidArgument). A tensor with elements must also have memory.

void check_tensor(const char* op, const char* name, const ConstTensorView& tensor, DType dtype,
                  const Shape& shape);
/// f32 | f16 | bf16 of the given rank, with at least one column where it is a matrix.
void check_activation(const char* op, const char* name, const ConstTensorView& tensor, int rank);
/// What a layer multiplies: [rows, features] in the activation dtype, or quantized where its
/// weights are.
void check_layer_input(const char* op, const ConstTensorView& x, const PackedLinear& layer);
/// A result for a layer to multiply: of `dtype`, or quantized if the caller wants it so.
void check_result(const char* op, const TensorView& out, DType dtype, const Shape& shape);
/// No byte belongs to both.
void check_disjoint(const char* op, const char* name, const ConstTensorView& tensor,
                    const char* other_name, const ConstTensorView& other);

}  // namespace fovea::ops
