#pragma once

#include <cstddef>
#include <cstdint>

#include "core/check.h"
#include "core/dtype.h"
#include "core/shape.h"

namespace fovea {

/// Refers to a contiguous row-major tensor somewhere in host or device memory; owns nothing.
/// `data` may be null only when the tensor is absent or has no elements.
struct ConstTensorView {
  const std::byte* data = nullptr;
  DType dtype = DType::kF32;
  Shape shape;

  [[nodiscard]] explicit operator bool() const noexcept { return data != nullptr; }
  [[nodiscard]] std::size_t bytes() const {
    return static_cast<std::size_t>(shape.elements()) * size_of(dtype);
  }
  template <class T>
  [[nodiscard]] const T* as() const noexcept {
    return reinterpret_cast<const T*>(data);
  }
};

/// As ConstTensorView, but what it refers to may be written.
struct TensorView {
  std::byte* data = nullptr;
  DType dtype = DType::kF32;
  Shape shape;

  [[nodiscard]] explicit operator bool() const noexcept { return data != nullptr; }
  operator ConstTensorView() const {
    return {data, dtype, shape};
  }  // NOLINT: writing implies reading
  [[nodiscard]] std::size_t bytes() const {
    return static_cast<std::size_t>(shape.elements()) * size_of(dtype);
  }
  template <class T>
  [[nodiscard]] T* as() const noexcept {
    return reinterpret_cast<T*>(data);
  }
  /// The same memory under another shape of as many elements.
  [[nodiscard]] TensorView reshaped(const Shape& other) const {
    FOVEA_CHECK(other.elements() == shape.elements(), kInternal, "cannot view ", shape, " as ",
                other);
    return {data, dtype, other};
  }
};

/// Rows [first, first + count) of a matrix, in the same memory.
template <class Matrix>
[[nodiscard]] Matrix row_range(const Matrix& matrix, std::int64_t first, std::int64_t count) {
  FOVEA_CHECK(
      matrix.shape.rank() == 2 && first >= 0 && count >= 0 && first <= matrix.shape[0] - count,
      kInternal, "rows [", first, ", ", first + count, ") of ", matrix.shape);
  const auto row_bytes = static_cast<std::size_t>(matrix.shape[1]) * size_of(matrix.dtype);
  return {matrix.data + static_cast<std::size_t>(first) * row_bytes,
          matrix.dtype,
          {count, matrix.shape[1]}};
}

}  // namespace fovea
