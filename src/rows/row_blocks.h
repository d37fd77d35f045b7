#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "fovea/row_block.h"
#include "fovea/tower/core/row_copy.h"
#include "fovea/tower/core/tensor_view.h"

namespace fovea {

/// Bytes from row to row of a block.
[[nodiscard]] std::size_t stride_of(const RowBlock& block, std::int64_t width) noexcept;

/// A copy of packed rows [rows, width] to somewhere, of a block to somewhere, and of what a copy
/// reads to a block.
[[nodiscard]] RowCopy packed_rows(ConstTensorView rows) noexcept;
[[nodiscard]] RowCopy rows_of_block(const RowBlock& block, std::int64_t width) noexcept;
[[nodiscard]] RowCopy copy_to_block(RowCopy rows, const RowBlock& block) noexcept;

/// @param label of the block, how messages begin.
/// @throws Error(kInvalidArgument) for a block that holds no rows of this width: a dtype or device
/// that does not exist, a negative number of rows, no memory, data or strides that are not aligned,
/// rows that overlap, more bytes than there are.
void check_block(const RowBlock& block, std::int64_t width, const std::string& label);

/// A block that a call reads or writes, as check_block has found it.
struct UsedBlock {
  const RowBlock* block;
  std::string label;
  bool is_written = true;
};
/// @throws Error(kInvalidArgument) if rows of a block that is written overlap those of another one.
void check_apart(std::span<const UsedBlock> blocks, std::int64_t width);

}  // namespace fovea
