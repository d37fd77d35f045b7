#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "fovea/embedding.h"
#include "fovea/tower/core/tensor_view.h"

namespace fovea {

/// Rows of an item as a place keeps them for several processes: a safetensors file with one tensor,
/// `rows` [rows, width], and in its metadata what else is known of the item, the name that it is
/// kept under, and a checksum of all of this (CRC-32).
struct RowEntry {
  Embedding facts;  ///< without name, times, key, data
  RowBytes file;
  std::size_t offset = 0;  ///< of the rows, in the file

  [[nodiscard]] ConstTensorView rows() const noexcept;
};

/// The bytes of an entry. @param item with its rows, as the tower leaves them.
/// @throws Error(kInvalidArgument) as stored_rows().
[[nodiscard]] std::vector<std::byte> encode_entry(const std::string& name, const Embedding& item);

/// Reads an entry. @param file bytes from anywhere. @return nothing if they are not, whole and
/// unchanged, what encode_entry() has made for this name.
[[nodiscard]] std::optional<RowEntry> decode_entry(const std::string& name, RowBytes file);

}  // namespace fovea
