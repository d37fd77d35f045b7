// Rows of a cache in host memory.
#include "cache/row_store.h"

#include <algorithm>
#include <memory>

#include "fovea/embedding.h"

namespace fovea {

RowStore host_row_store() {
  return [](std::span<const std::byte> rows) -> StoredRows {
    const auto kept = std::make_shared<const RowBytes>(rows);
    return [kept](std::span<std::byte> out) { std::ranges::copy(*kept, out.begin()); };
  };
}

}  // namespace fovea
