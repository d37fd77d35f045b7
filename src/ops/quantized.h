#pragma once

#include <cstddef>

#include "fovea/tower/core/tensor_view.h"
#include "fovea/tower/device/arena.h"

namespace fovea::ops {

// Quantized rows: a tensor [rows, cols] of dtype kF8E4M3 whose numbers count scale[r] times. One
// piece of memory, which only quantized_tensor() takes, holds values, scales and norms, each
// beginning at a multiple of 128 bytes. Norms, attention and gated() write such a tensor if `out`
// is one; layers with quantized weights read it as x, and so need not quantize x themselves.

/// The places of the parts of a quantized tensor.
struct QuantizedRows {
  std::byte* values;  ///< [rows, cols]
  float* scale;       ///< [rows]
  float* norm;        ///< [rows], at least the Euclidean norm of a row
};

/// Bytes of the values, and of the scales or the norms, each filled up to a multiple of 128.
[[nodiscard]] inline std::size_t value_bytes(const Shape& shape) {
  return (static_cast<std::size_t>(shape.elements()) + 127) / 128 * 128;
}
[[nodiscard]] inline std::size_t scale_bytes(const Shape& shape) {
  return (static_cast<std::size_t>(shape[0]) * sizeof(float) + 127) / 128 * 128;
}
/// Bytes of all three parts.
[[nodiscard]] inline std::size_t quantized_bytes(const Shape& shape) {
  return value_bytes(shape) + 2 * scale_bytes(shape);
}

/// Memory for quantized rows until the caller's scope of the arena ends.
[[nodiscard]] inline TensorView quantized_tensor(Arena& arena, const Shape& shape) {
  const auto bytes = static_cast<std::int64_t>(quantized_bytes(shape));
  return {arena.tensor(DType::kU8, {bytes}).data, DType::kF8E4M3, shape};
}

/// The parts of a tensor made by quantized_tensor(). Only who writes one may write through them.
[[nodiscard]] inline QuantizedRows parts_of(const ConstTensorView& quantized) {
  auto* const values = const_cast<std::byte*>(quantized.data);
  std::byte* const scale = values + value_bytes(quantized.shape);
  return {.values = values,
          .scale = reinterpret_cast<float*>(scale),
          .norm = reinterpret_cast<float*>(scale + scale_bytes(quantized.shape))};
}

}  // namespace fovea::ops
