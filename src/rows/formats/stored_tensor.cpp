// Tensors on their way to and from bytes, and the safetensors form of them.
#include "rows/formats/stored_tensor.h"

#include <utility>

#include "checkpoint/safetensors.h"
#include "checkpoint/safetensors_format.h"
#include "core/boundary.h"
#include "core/check.h"
#include "core/json_writer.h"
#include "core/row_dtype.h"
#include "fovea/tower/core/shape.h"

namespace fovea {

DType to_dtype(StoredType type) noexcept {
  switch (type) {
    case StoredType::kFloat32: return DType::kF32;
    case StoredType::kBFloat16: return DType::kBF16;
    case StoredType::kFloat16: return DType::kF16;
    case StoredType::kInt64: return DType::kI64;
  }
  return DType::kF32;
}

std::optional<StoredType> to_stored(DType dtype) noexcept {
  for (const StoredType type :
       {StoredType::kFloat32, StoredType::kBFloat16, StoredType::kFloat16, StoredType::kInt64}) {
    if (to_dtype(type) == dtype) return type;
  }
  return std::nullopt;
}

std::optional<std::int64_t> bytes_of(StoredType type,
                                     std::span<const std::int64_t> shape) noexcept {
  std::optional<std::int64_t> bytes = static_cast<std::int64_t>(size_of(to_dtype(type)));
  for (const std::int64_t size : shape) {
    if (size < 0 || !bytes) return std::nullopt;
    bytes = checked_mul(*bytes, size);
  }
  return bytes;
}

void check_data(const StoredTensor& tensor, const char* writer) {
  const std::optional<std::int64_t> bytes = bytes_of(tensor.type, tensor.shape);
  FOVEA_CHECK(bytes && std::cmp_equal(*bytes, tensor.data.size()), kInvalidArgument, writer,
              ": the shape of a tensor does not have ", tensor.data.size(), " bytes");
}

StoredTensor stored_rows(const Embedding& item, std::string name) try {
  FOVEA_CHECK(!item.error, kInvalidArgument, item.name, ": failed and has no rows");
  FOVEA_CHECK(item.has_data(), kInvalidArgument, item.name,
              ": its rows are in memory of the caller");
  return {.name = std::move(name),
          .type = to_stored(to_dtype(item.dtype)).value(),
          .shape = {item.rows, item.width},
          .data = {item.data.data(), item.data.size()}};
} catch (...) {
  rethrow_as_error();
}

StoredTensor stored_grid(const std::array<std::int64_t, 3>& grid_thw, std::string name) try {
  return {.name = std::move(name),
          .type = StoredType::kInt64,
          .shape = {3},
          .data = std::as_bytes(std::span(grid_thw))};
} catch (...) {
  rethrow_as_error();
}

void write_safetensors(std::span<const StoredTensor> tensors,
                       const std::map<std::string, std::string>& metadata,
                       const ByteSink& sink) try {
  std::vector<checkpoint::OutputTensor> output;
  for (const StoredTensor& tensor : tensors) {
    check_data(tensor, "write_safetensors");
    FOVEA_CHECK(!tensor.name.empty(), kInvalidArgument, "write_safetensors: a tensor has no name");
    FOVEA_CHECK(tensor.shape.size() <= kMaxRank, kInvalidArgument,
                "write_safetensors: ", json_quote(tensor.name), " has rank ", tensor.shape.size(),
                ", at most ", kMaxRank, " is written");
    output.push_back(
        {tensor.name, {tensor.data.data(), to_dtype(tensor.type), Shape(tensor.shape)}});
  }
  checkpoint::write_safetensors(output, metadata,
                                [&](std::span<const std::byte> bytes) { call_back(sink, bytes); });
} catch (...) {
  rethrow_as_error();
}

std::vector<StoredTensor> read_safetensors(std::span<const std::byte> file,
                                           const std::string& name) try {
  const checkpoint::SafetensorsHeader header =
      checkpoint::parse_safetensors_header(file, file.size(), name);
  std::vector<StoredTensor> tensors;
  for (const checkpoint::TensorEntry& entry : header.tensors) {
    const std::optional<DType> dtype = checkpoint::find_file_dtype(entry.dtype)->dtype;
    const std::optional<StoredType> type = dtype ? to_stored(*dtype) : std::nullopt;
    FOVEA_CHECK(type, kUnsupported, name, ": ", json_quote(entry.name), " has dtype ", entry.dtype,
                ", which is none of rows or grids");
    tensors.push_back(
        {.name = entry.name,
         .type = *type,
         .shape = entry.shape,
         .data = file.subspan(header.data_offset + entry.begin, entry.end - entry.begin)});
  }
  return tensors;
} catch (...) {
  rethrow_as_error();
}

std::vector<std::byte> in_memory(const std::function<void(const ByteSink&)>& write) try {
  std::vector<std::byte> bytes;
  call_back(write, [&bytes](std::span<const std::byte> piece) {
    bytes.insert(bytes.end(), piece.begin(), piece.end());
  });
  return bytes;
} catch (...) {
  rethrow_as_error();
}

}  // namespace fovea
