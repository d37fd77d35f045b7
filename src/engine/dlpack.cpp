// Rows as tensors of DLPack. Source: DLPack 0.6, dlpack.h.
#include "fovea/dlpack.h"

#include <dlpack/dlpack.h>

#include <array>
#include <cstddef>
#include <utility>

#include "core/boundary.h"
#include "core/check.h"
#include "core/row_dtype.h"
#include "fovea/tower/core/shape.h"
#include "rows/row_target.h"

namespace fovea {

namespace {

constexpr std::uint8_t code(DLDataTypeCode value) { return static_cast<std::uint8_t>(value); }

DLDataType to_dl(RowDType dtype) {
  switch (dtype) {
    case RowDType::kFloat32: return {code(kDLFloat), 32, 1};
    case RowDType::kBFloat16: return {code(kDLBfloat), 16, 1};
    case RowDType::kFloat16: return {code(kDLFloat), 16, 1};
  }
  return {code(kDLFloat), 32, 1};
}

RowDType to_row_dtype(const DLDataType& type) {
  for (const RowDType dtype : {RowDType::kFloat32, RowDType::kBFloat16, RowDType::kFloat16}) {
    const DLDataType known = to_dl(dtype);
    if (type.code == known.code && type.bits == known.bits && type.lanes == 1) return dtype;
  }
  throw Error(ErrorCode::kInvalidArgument,
              cat("DLPack tensor: rows are float32, float16 or bfloat16, got type code ",
                  static_cast<int>(type.code), " of ", static_cast<int>(type.bits), " bits x ",
                  type.lanes));
}

int to_device(const DLDevice& device) {
  switch (device.device_type) {
    case kDLCPU:
    case kDLCUDAHost: return RowBlock::kHost;
    case kDLCUDA:
    case kDLCUDAManaged: return device.device_id;
    default: break;
  }
  throw Error(ErrorCode::kUnsupported, cat("DLPack tensor: expected host memory or that of CUDA, "
                                           "got device type ",
                                           static_cast<int>(device.device_type)));
}

/// A tensor, and what it refers to.
struct OwnedTensor {
  DLManagedTensor tensor{};
  std::array<std::int64_t, 2> shape{};
  std::array<std::int64_t, 2> strides{};
  RowBytes data;
  std::shared_ptr<const void> owner;
};

/// Describes the memory of a block, which `owned` keeps.
DLManagedTensor* tensor_of(std::unique_ptr<OwnedTensor> owned, const RowBlock& block,
                           std::int64_t width) {
  check_block(block, width, "DLPack tensor");
  const std::size_t element = size_of(to_dtype(block.dtype));
  owned->shape = {block.rows, width};
  owned->strides = {static_cast<std::int64_t>(stride_of(block, width) / element), 1};
  DLTensor& tensor = owned->tensor.dl_tensor;
  tensor.data = block.data;
  tensor.device =
      block.device == RowBlock::kHost ? DLDevice{kDLCPU, 0} : DLDevice{kDLCUDA, block.device};
  tensor.ndim = 2;
  tensor.dtype = to_dl(block.dtype);
  tensor.shape = owned->shape.data();
  tensor.strides = owned->strides.data();
  owned->tensor.manager_ctx = owned.get();
  owned->tensor.deleter = [](DLManagedTensor* self) {
    delete static_cast<OwnedTensor*>(self->manager_ctx);
  };
  return &owned.release()->tensor;
}

std::int64_t checked_width(const DLTensor& tensor) {
  FOVEA_CHECK(
      tensor.ndim == 2 && tensor.shape != nullptr && tensor.shape[0] >= 0 && tensor.shape[1] >= 0,
      kInvalidArgument, "DLPack tensor: expected [rows, width], got ", tensor.ndim, " dimensions");
  return tensor.shape[1];
}

}  // namespace

DLManagedTensor* to_dlpack(Embedding&& rows) try {
  FOVEA_CHECK(!rows.error, kInvalidArgument, rows.name, ": failed and has no rows");
  check_data(rows);
  auto owned = std::make_unique<OwnedTensor>();
  owned->data = std::move(rows.data);
  const RowBlock block{.data = owned->data.data(), .dtype = rows.dtype, .rows = rows.rows};
  return tensor_of(std::move(owned), block, rows.width);
} catch (...) {
  rethrow_as_error();
}

DLManagedTensor* to_dlpack(const RowBlock& block, std::int64_t width,
                           std::shared_ptr<const void> owner) try {
  FOVEA_CHECK(width >= 0, kInvalidArgument, "DLPack tensor: rows of ", width, " elements");
  auto owned = std::make_unique<OwnedTensor>();
  owned->owner = std::move(owner);
  return tensor_of(std::move(owned), block, width);
} catch (...) {
  rethrow_as_error();
}

RowBlock row_block(const DLManagedTensor& managed, std::int64_t width) try {
  const DLTensor& tensor = managed.dl_tensor;
  FOVEA_CHECK(checked_width(tensor) == width, kInvalidArgument, "DLPack tensor: rows are ", width,
              " wide, got ", tensor.shape[1]);
  RowBlock block{.device = to_device(tensor.device),
                 .dtype = to_row_dtype(tensor.dtype),
                 .rows = tensor.shape[0]};
  if (tensor.data != nullptr) {
    block.data = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  }
  if (tensor.strides != nullptr && block.rows > 1) {
    const auto element = static_cast<std::int64_t>(size_of(to_dtype(block.dtype)));
    const auto bytes = checked_mul(tensor.strides[0], element);
    FOVEA_CHECK(bytes && *bytes > 0, kInvalidArgument, "DLPack tensor: rows are ",
                tensor.strides[0], " elements apart");
    block.row_stride_bytes = *bytes;
  }
  FOVEA_CHECK(tensor.strides == nullptr || width <= 1 || block.rows == 0 || tensor.strides[1] == 1,
              kInvalidArgument, "DLPack tensor: elements of a row lie one after the other, got ",
              tensor.strides[1], " elements apart");
  check_block(block, width, "DLPack tensor");
  return block;
} catch (...) {
  rethrow_as_error();
}

MediaItem precomputed_rows(const DLManagedTensor& tensor, std::string name) try {
  const std::int64_t width = checked_width(tensor.dl_tensor);
  return precomputed_rows(row_block(tensor, width), width, std::move(name));
} catch (...) {
  rethrow_as_error();
}

}  // namespace fovea
