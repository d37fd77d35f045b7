#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "fovea/embedding.h"

namespace fovea::ranks {

/// Appends what an embedding says besides its name and its rows, for a rank of the same build.
void append_description(const Embedding& item, std::vector<std::byte>& bytes);

/// Reads what append_description has written from the front of `bytes`, which then begins behind
/// it. The name stays empty; `data` has the size of the rows, uninitialised.
/// @param most_bytes of the rows.
/// @throws Error(kCorruptData) if it is something else or has more rows, Error(kOutOfMemory).
[[nodiscard]] Embedding read_description(std::span<const std::byte>& bytes, std::size_t most_bytes);

}  // namespace fovea::ranks
