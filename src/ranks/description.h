#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "fovea/embedding.h"

namespace fovea::ranks {

/// Appends all members of an embedding but its name and its rows, for a rank of the same build.
void append_description(const Embedding& item, std::vector<std::byte>& bytes);

/// Reads what append_description has written from the front of `bytes`, which then begins behind
/// it. Name and data stay empty.
/// @param most_bytes of the rows.
/// @throws Error(kCorruptData) if it is something else or has more rows, Error(kOutOfMemory).
[[nodiscard]] Embedding read_description(std::span<const std::byte>& bytes, std::size_t most_bytes);

/// Bytes of the rows of an embedding, whether it has data or not.
[[nodiscard]] std::size_t row_bytes(const Embedding& item) noexcept;

}  // namespace fovea::ranks
