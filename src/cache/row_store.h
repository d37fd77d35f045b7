#pragma once

#include <cstddef>
#include <functional>
#include <span>

namespace fovea {

/// Rows that a store keeps, as what gives them back: writes all of them to host memory of their
/// size. Owns the memory they lie in, which is released with its last copy. May be called from
/// several threads at the same time.
using StoredRows = std::function<void(std::span<std::byte> out)>;

/// A store: copies rows from host memory to where it keeps them. Thread-safe.
/// @throws std::bad_alloc; then nothing is kept.
using RowStore = std::function<StoredRows(std::span<const std::byte> rows)>;

/// The store in host memory: rows as they are, nothing between them.
[[nodiscard]] RowStore host_row_store();

}  // namespace fovea
