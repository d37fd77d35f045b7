#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "fovea/embedding.h"
#include "fovea/error.h"
#include "fovea/row_block.h"
#include "fovea/tower/core/row_copy.h"
#include "fovea/tower/core/tensor_view.h"
#include "fovea/tower/device/device.h"

namespace fovea {

/// Where the rows of an item go: into the data of its result, or into a block of the caller. Refers
/// to both.
struct RowTarget {
  Embedding* result = nullptr;          ///< gets what is known about the rows in any case
  const RowBlock* block = nullptr;      ///< with room for the rows; null: they go to result->data
  RowDType dtype = RowDType::kFloat32;  ///< that of the block, if there is one

  [[nodiscard]] bool is_on_gpu() const noexcept {
    return block != nullptr && block->device != RowBlock::kHost;
  }
  /// The error of an item with more rows than its block has room for.
  [[nodiscard]] std::optional<Error> lacks_room(std::int64_t rows, const std::string& name) const;
  /// Completes a copy of rows so that it writes here: fills in rows, width and dtype of the result,
  /// and makes memory for result->data if the rows go there. @throws Error(kOutOfMemory).
  [[nodiscard]] RowCopy place(RowCopy rows) const;
};

/// Bytes from row to row of a block.
[[nodiscard]] std::size_t stride_of(const RowBlock& block, std::int64_t width) noexcept;

/// A copy of packed rows [rows, width], and one of a block, to somewhere.
[[nodiscard]] RowCopy packed_rows(ConstTensorView rows) noexcept;
[[nodiscard]] RowCopy rows_of_block(const RowBlock& block, std::int64_t width) noexcept;

/// @param label of the block, how messages begin.
/// @throws Error(kInvalidArgument) for a block that holds no rows of this width: a dtype or device
/// that does not exist, a negative number of rows, no memory, data or strides that are not aligned,
/// rows that overlap, more bytes than there are.
void check_block(const RowBlock& block, std::int64_t width, const std::string& label);
/// @param device any of an engine. @throws Error(kInvalidArgument) if a block lies elsewhere than
/// it says, or where the engine does not reach it.
void check_memory(const RowBlock& block, const Device& device, const std::string& label);

/// The same of memory that begins at `data`. @param place RowBlock::device.
void check_memory(const void* data, int place, const Device& device, const std::string& label);

/// Requires the bytes that the rows of a result take, in memory of its own.
/// @throws Error(kInvalidArgument) for rows that are elsewhere, and for other bytes than rows.
void check_data(const Embedding& item);

/// A block that a call reads or writes, as check_block has found it.
struct UsedBlock {
  const RowBlock* block;
  std::string label;
  bool is_written = true;
};
/// @throws Error(kInvalidArgument) if rows of a block that is written overlap those of another one.
void check_apart(std::span<const UsedBlock> blocks, std::int64_t width);

}  // namespace fovea
