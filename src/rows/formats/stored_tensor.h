#pragma once

#include <cstdint>
#include <optional>

#include "fovea/row_formats.h"
#include "fovea/tower/core/dtype.h"

namespace fovea {

[[nodiscard]] DType to_dtype(StoredType type) noexcept;
/// Absent for a type that rows and grids do not have.
[[nodiscard]] std::optional<StoredType> to_stored(DType dtype) noexcept;

/// Bytes of the elements; absent if a size is negative or there are more than 63 bits count.
[[nodiscard]] std::optional<std::int64_t> bytes_of(StoredType type,
                                                   std::span<const std::int64_t> shape) noexcept;

/// @throws Error(kInvalidArgument) if the data does not fit the shape. @param writer for the
/// message.
void check_data(const StoredTensor& tensor, const char* writer);

}  // namespace fovea
