#pragma once

#include <cstddef>
#include <span>

#include "fovea/communicator.h"
#include "ranks/byte_sequence.h"

namespace fovea::ranks {

/// Gathers bytes of all ranks in host memory, where each has a sequence of its own length.
/// @param longest bytes of the longest; the same on all ranks.
/// @param rows of each rank: those of this one are there, the others are written.
/// @throws as Communicator::all_gather_pieces.
void gather_rows(Communicator& ranks, std::size_t longest, std::span<const ByteSequence> rows);

}  // namespace fovea::ranks
