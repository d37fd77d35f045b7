#pragma once

#include <cstddef>
#include <cstdint>

#include "fovea/tower/core/dtype.h"

namespace fovea {

/// A copy of rows that may change their distance and their float dtype. Elements of a row lie one
/// after the other; data and strides are multiples of the element size; nothing overlaps.
struct RowCopy {
  const std::byte* from = nullptr;
  DType from_dtype = DType::kF32;
  std::size_t from_stride = 0;  ///< bytes from row to row, at least those of a row
  std::byte* to = nullptr;
  DType to_dtype = DType::kF32;
  std::size_t to_stride = 0;
  std::int64_t rows = 0;
  std::int64_t width = 0;  ///< elements of a row

  [[nodiscard]] std::size_t from_row_bytes() const noexcept {
    return static_cast<std::size_t>(width) * size_of(from_dtype);
  }
  [[nodiscard]] std::size_t to_row_bytes() const noexcept {
    return static_cast<std::size_t>(width) * size_of(to_dtype);
  }
  /// Whether rows lie one after the other on both sides.
  [[nodiscard]] bool is_packed() const noexcept {
    return rows <= 1 || (from_stride == from_row_bytes() && to_stride == to_row_bytes());
  }
};

/// Does it in host memory: dtypes as convert_rows (core/row_dtype.h).
void copy_rows(const RowCopy& copy) noexcept;

}  // namespace fovea
