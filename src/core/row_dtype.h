#pragma once

#include <cstddef>
#include <optional>

#include "fovea/options.h"
#include "fovea/tower/core/dtype.h"

namespace fovea {

/// The DType of a RowDType.
[[nodiscard]] DType to_dtype(RowDType dtype) noexcept;
/// The inverse; absent for a DType that rows do not have.
[[nodiscard]] std::optional<RowDType> to_row_dtype(DType dtype) noexcept;

/// Copies `count` elements of a float dtype, converting them through f32, rounded to nearest even.
/// The ranges must not overlap.
void convert_rows(DType from, const std::byte* source, DType to, std::byte* out,
                  std::size_t count) noexcept;
inline void convert_rows(DType from, const std::byte* source, RowDType to, std::byte* out,
                         std::size_t count) noexcept {
  convert_rows(from, source, to_dtype(to), out, count);
}

}  // namespace fovea
