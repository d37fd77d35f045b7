// Memory of the caller: whether rows fit there, and copies to and from it.
#include "rows/row_target.h"

#include <algorithm>
#include <limits>
#include <new>
#include <tuple>
#include <vector>

#include "core/check.h"
#include "core/row_dtype.h"
#include "fovea/tower/core/shape.h"

namespace fovea {

namespace {

std::size_t row_bytes(const RowBlock& block, std::int64_t width) noexcept {
  return static_cast<std::size_t>(width) * size_of(to_dtype(block.dtype));
}

std::uintptr_t begin_of(const RowBlock& block) noexcept {
  return reinterpret_cast<std::uintptr_t>(block.data);
}

/// Behind the last byte of the last row of a block that has rows.
std::uintptr_t end_of(const RowBlock& block, std::int64_t width) noexcept {
  return begin_of(block) + static_cast<std::size_t>(block.rows - 1) * stride_of(block, width) +
         row_bytes(block, width);
}

/// Whether blocks whose ranges of memory overlap have rows that do. Only equal strides are looked
/// into: columns of one matrix. @param first begins before `second`.
bool overlap(const RowBlock& first, const RowBlock& second, std::int64_t width) {
  const std::size_t stride = stride_of(first, width);
  if (stride != stride_of(second, width)) return true;
  const std::size_t apart = (begin_of(second) - begin_of(first)) % stride;
  return apart < row_bytes(first, width) || stride - apart < row_bytes(second, width);
}

void make_data(Embedding& result, std::size_t bytes) {
  try {
    result.data.resize(bytes);
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::kOutOfMemory,
                cat(result.name, ": no memory for the ", bytes, " bytes of its rows"));
  }
}

}  // namespace

std::optional<Error> RowTarget::lacks_room(std::int64_t rows, const std::string& name) const {
  if (block == nullptr || rows <= block->rows) return std::nullopt;
  return Error(ErrorCode::kInvalidArgument,
               cat(name, ": ", rows, " rows do not fit into a destination for ", block->rows));
}

RowCopy RowTarget::place(RowCopy rows) const {
  result->rows = rows.rows;
  result->width = rows.width;
  result->dtype = dtype;
  if (block != nullptr) {
    rows.to = static_cast<std::byte*>(block->data);
    rows.to_dtype = to_dtype(block->dtype);
    rows.to_stride = stride_of(*block, rows.width);
    return rows;
  }
  rows.to_dtype = to_dtype(dtype);
  rows.to_stride = rows.to_row_bytes();
  make_data(*result, static_cast<std::size_t>(rows.rows) * rows.to_stride);
  rows.to = result->data.data();
  return rows;
}

std::size_t stride_of(const RowBlock& block, std::int64_t width) noexcept {
  return block.row_stride_bytes == 0 ? row_bytes(block, width)
                                     : static_cast<std::size_t>(block.row_stride_bytes);
}

RowCopy packed_rows(ConstTensorView rows) noexcept {
  RowCopy copy{
      .from = rows.data, .from_dtype = rows.dtype, .rows = rows.shape[0], .width = rows.shape[1]};
  copy.from_stride = copy.from_row_bytes();
  return copy;
}

RowCopy rows_of_block(const RowBlock& block, std::int64_t width) noexcept {
  return {.from = static_cast<const std::byte*>(block.data),
          .from_dtype = to_dtype(block.dtype),
          .from_stride = stride_of(block, width),
          .rows = block.rows,
          .width = width};
}

void check_block(const RowBlock& block, std::int64_t width, const std::string& label) {
  FOVEA_CHECK(block.dtype == RowDType::kFloat32 || block.dtype == RowDType::kBFloat16 ||
                  block.dtype == RowDType::kFloat16,
              kInvalidArgument, label, ": there is no dtype of number ",
              static_cast<int>(block.dtype));
  FOVEA_CHECK(block.device >= RowBlock::kHost, kInvalidArgument, label,
              ": expected a GPU or -1 for the host, got device ", block.device);
  FOVEA_CHECK(block.rows >= 0, kInvalidArgument, label, ": ", block.rows, " rows");
  if (block.rows == 0) return;
  FOVEA_CHECK(block.data != nullptr, kInvalidArgument, label, ": no memory for ", block.rows,
              " rows");
  const std::size_t element = size_of(to_dtype(block.dtype));
  const auto least = static_cast<std::int64_t>(row_bytes(block, width));
  FOVEA_CHECK(block.row_stride_bytes == 0 || block.row_stride_bytes >= least, kInvalidArgument,
              label, ": rows of ", least, " bytes overlap if they are ", block.row_stride_bytes,
              " bytes apart");
  FOVEA_CHECK(begin_of(block) % element == 0 && stride_of(block, width) % element == 0,
              kInvalidArgument, label, ": data and stride must be multiples of the ", element,
              " bytes of ", to_string(to_dtype(block.dtype)), ", got a stride of ",
              stride_of(block, width));
  const auto bytes = checked_mul(block.rows, static_cast<std::int64_t>(stride_of(block, width)));
  FOVEA_CHECK(bytes && static_cast<std::uintptr_t>(*bytes) <=
                           std::numeric_limits<std::uintptr_t>::max() - begin_of(block),
              kInvalidArgument, label, ": ", block.rows, " rows are more than memory has");
}

void check_data(const Embedding& item) {
  FOVEA_CHECK(item.has_data(), kInvalidArgument, item.name,
              ": its rows are in memory of the caller");
  const DType dtype = to_dtype(item.dtype);
  const auto elements = checked_mul(item.rows, item.width);
  const auto bytes =
      elements ? checked_mul(*elements, static_cast<std::int64_t>(size_of(dtype))) : std::nullopt;
  FOVEA_CHECK(item.rows >= 0 && item.width >= 0 && bytes &&
                  static_cast<std::uint64_t>(*bytes) == item.data.size(),
              kInvalidArgument, item.name, ": ", item.rows, " rows of ", item.width, " x ",
              to_string(dtype), " do not take ", item.data.size(), " bytes");
}

void check_memory(const RowBlock& block, const Device& device, const std::string& label) {
  if (block.rows > 0) check_memory(block.data, block.device, device, label);
}

void check_memory(const void* data, int place, const Device& device, const std::string& label) {
  const std::string where =
      place == RowBlock::kHost ? "host memory" : cat("memory of cuda:", place);
  const bool is_reached = place == RowBlock::kHost || !device.properties().host_memory;
  FOVEA_CHECK(is_reached, kInvalidArgument, label, ": an engine on the CPU does not reach ", where);
  FOVEA_CHECK(device.is_memory_of(data, place), kInvalidArgument, label, ": is not ", where,
              ", as it says");
}

void check_apart(std::span<const UsedBlock> blocks, std::int64_t width) {
  std::vector<const UsedBlock*> order;
  for (const UsedBlock& used : blocks) {
    if (used.block->rows > 0) order.push_back(&used);
  }
  std::ranges::sort(order, {}, [](const UsedBlock* used) {
    return std::tuple(used->block->device, begin_of(*used->block));
  });
  for (std::size_t i = 0; i < order.size(); ++i) {
    const RowBlock& first = *order[i]->block;
    const std::uintptr_t end = end_of(first, width);
    for (std::size_t j = i + 1; j < order.size(); ++j) {
      const RowBlock& second = *order[j]->block;
      if (second.device != first.device || begin_of(second) >= end) break;
      const bool is_written = order[i]->is_written || order[j]->is_written;
      FOVEA_CHECK(!is_written || !overlap(first, second, width), kInvalidArgument, order[j]->label,
                  " overlaps ", order[i]->label);
    }
  }
}

}  // namespace fovea
