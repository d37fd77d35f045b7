#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "fovea/device_memory.h"
#include "fovea/options.h"

namespace fovea {

/// Where the rows of an item lie, one after the other.
struct LentItem {
  std::size_t memory = 0;        ///< in which of LentRows::memories
  std::size_t offset_bytes = 0;  ///< of its first row, a multiple of 256
  std::int64_t rows = 0;
  std::int64_t width = 0;  ///< elements of a row
  RowDType dtype = RowDType::kBFloat16;
};

/// Rows of an encoder cache in memory of GPUs, for other processes of the host (MappedMemory), of
/// Engine::lend_rows(). They are complete, and stay as they are until `pins` goes.
struct LentRows {
  /// Of each GPU of the engine, always the same, so that mappings may be kept: all memory of the
  /// cache there.
  std::vector<DeviceMemoryName> memories;
  std::vector<std::optional<LentItem>> items;  ///< in the order asked for; absent: not on a GPU
  std::shared_ptr<const void> pins;
};

}  // namespace fovea
