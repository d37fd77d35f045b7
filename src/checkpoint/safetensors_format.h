#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "fovea/tower/core/dtype.h"

namespace fovea::checkpoint {

// The layout that readers and writers of safetensors files share.
//
//   8 bytes   n, little endian: length of the header; n <= kMaxHeaderBytes, 8 + n <= file size
//   n bytes   header, a JSON object that begins with '{' and may end with spaces:
//               "__metadata__": {string: string, ...}                          optional
//               NAME: {"dtype": "BF16", "shape": [2, 3], "data_offsets": [begin, end]}, ...
//   the rest  data; offsets are relative to its start. Ordered by begin, the tensors tile it:
//             no overlap, no hole, no trailing bytes. Nothing is promised about alignment.

/// Bytes of the length of the header.
inline constexpr std::size_t kLengthBytes = 8;
inline constexpr std::int64_t kBitsPerByte = 8;
inline constexpr std::string_view kMetadataKey = "__metadata__";

/// The length of the header.
[[nodiscard]] std::uint64_t read_length(std::span<const std::byte, kLengthBytes> bytes) noexcept;

/// An element type of the safetensors format, and ours if Fovea computes with it.
struct FileDType {
  std::string_view name;
  std::int64_t bits;
  std::optional<DType> dtype;
};

/// The type of this name in files ("BF16", "F8_E4M3"); null if there is none.
[[nodiscard]] const FileDType* find_file_dtype(std::string_view name) noexcept;

/// The name of one of our types in files.
[[nodiscard]] std::string_view file_name_of(DType dtype) noexcept;

}  // namespace fovea::checkpoint
