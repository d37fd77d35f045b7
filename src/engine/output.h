#pragma once

#include <cstddef>
#include <vector>

#include "core/tensor_view.h"
#include "fovea/options.h"

namespace fovea {

/// The DType of a RowDType.
[[nodiscard]] DType to_dtype(RowDType dtype) noexcept;

/// Copies rows from host memory, converting between float dtypes (through f32, round to nearest
/// even).
[[nodiscard]] std::vector<std::byte> convert_rows(ConstTensorView rows, RowDType dtype);

}  // namespace fovea
