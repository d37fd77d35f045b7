#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "fovea/embedding.h"
#include "fovea/export.h"

namespace fovea {

/// Element types of the formats below.
enum class StoredType : std::uint8_t { kFloat32, kBFloat16, kFloat16, kInt64 };

/// A tensor as bytes: little-endian, row-major, one element after the other. Owns no elements.
struct StoredTensor {
  std::string name;  ///< in safetensors only
  StoredType type = StoredType::kFloat32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> data;
};

/// The rows of an item, [rows, width]; refers to them.
/// @throws Error(kInvalidArgument) if it has an error or no data.
[[nodiscard]] FOVEA_API StoredTensor stored_rows(const Embedding& item, std::string name = {});
/// A grid, [3], as a request to a language model has it beside the rows; refers to it.
[[nodiscard]] FOVEA_API StoredTensor stored_grid(const std::array<std::int64_t, 3>& grid_thw,
                                                 std::string name = {});

/// Takes the bytes of a file piece by piece, in order. What it throws leaves the writer as it is.
using ByteSink = std::function<void(std::span<const std::byte>)>;

/// Writes what torch.save() writes for one tensor: torch.load(weights_only=True) reads it, also
/// with mmap=True, and so does vLLM as `image_embeds`. A ZIP archive without compression, its
/// elements at a multiple of 64 bytes.
/// @throws Error(kInvalidArgument) if the data does not fit the shape, Error(kUnsupported) from
/// 4 GiB on.
/// Source: docs/reference/row_formats.md, "torch".
FOVEA_API void write_torch(const StoredTensor& tensor, const ByteSink& sink);
/// Writes what numpy.save() writes, version 1.0.
/// @throws Error(kUnsupported) for bfloat16, which numpy has not, Error(kInvalidArgument) if the
/// data does not fit the shape.
/// Source: docs/reference/row_formats.md, "npy".
FOVEA_API void write_npy(const StoredTensor& tensor, const ByteSink& sink);
/// Writes a safetensors file. Tensors of larger elements come first, otherwise in the given order.
/// @throws Error(kInvalidArgument) for data that does not fit the shape, and for a name that is
/// empty, given twice or "__metadata__".
FOVEA_API void write_safetensors(std::span<const StoredTensor> tensors,
                                 const std::map<std::string, std::string>& metadata,
                                 const ByteSink& sink);
/// Writes the bytes that save_safetensors() writes to a file. @throws as that, but for the file.
FOVEA_API void write_safetensors(std::span<const Embedding> items,
                                 const std::map<std::string, std::string>& metadata,
                                 const ByteSink& sink);

/// The bytes that a writer writes, in memory: in_memory([&](const ByteSink& sink) {
/// write_torch(tensor, sink); }). @throws as the writer, and Error(kOutOfMemory).
[[nodiscard]] FOVEA_API std::vector<std::byte> in_memory(
    const std::function<void(const ByteSink&)>& write);

/// Reads what write_torch() and torch.save() write for one tensor in host memory. Checks every
/// length, and the sums of the archive; runs nothing of what the file says.
/// @param file stays where it is: the result refers to it. @param name for messages.
/// @throws Error(kCorruptData); Error(kUnsupported) for other objects and types, compressed
/// archives, and tensors whose elements do not lie one after the other.
[[nodiscard]] FOVEA_API StoredTensor read_torch(std::span<const std::byte> file,
                                                const std::string& name);
/// Reads what write_npy() and numpy.save() write.
/// @param file stays where it is: the result refers to it. @param name for messages.
/// @throws Error(kCorruptData) for a header or a length that is wrong, Error(kUnsupported) for
/// Fortran order, and for types other than those of StoredType.
[[nodiscard]] FOVEA_API StoredTensor read_npy(std::span<const std::byte> file,
                                              const std::string& name);
/// Reads a safetensors file: its tensors in the order of their data.
/// @param file stays where it is: the result refers to it. @param name for messages.
/// @throws Error(kCorruptData) for a header that is wrong or does not fit the data,
/// Error(kUnsupported) for types other than those of StoredType.
[[nodiscard]] FOVEA_API std::vector<StoredTensor> read_safetensors(std::span<const std::byte> file,
                                                                   const std::string& name);

}  // namespace fovea
