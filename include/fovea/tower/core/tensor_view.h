#pragma once

#include <cstddef>
#include <cstdint>

#include "fovea/export.h"
#include "fovea/tower/core/dtype.h"
#include "fovea/tower/core/shape.h"

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
  /// @throws Error(kInternal) for another number.
  [[nodiscard]] FOVEA_API TensorView reshaped(const Shape& other) const;
};

/// Rows [first, first + count) of a matrix, in the same memory.
/// @throws Error(kInternal) if `matrix` is none or has fewer.
[[nodiscard]] FOVEA_API TensorView row_range(const TensorView& matrix, std::int64_t first,
                                             std::int64_t count);
[[nodiscard]] FOVEA_API ConstTensorView row_range(const ConstTensorView& matrix, std::int64_t first,
                                                  std::int64_t count);

}  // namespace fovea
