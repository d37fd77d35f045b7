#pragma once

#include <span>
#include <vector>

#include "fovea/communicator.h"
#include "fovea/embedding.h"
#include "fovea/engine.h"
#include "fovea/export.h"
#include "fovea/media.h"

namespace fovea {

/// Encodes items together with the other ranks of a group, each with an engine of its own for the
/// same checkpoint: every rank calls this with the same items and options, encodes its share, and
/// returns all rows, in the order of the items. On a CPU they have the bits of Engine::encode.
///
/// The assignment is that of vLLM: from the item with the most patches to the one with the least,
/// each to the rank with the fewest so far. It follows from descriptions and headers
/// (Engine::patches_ahead) without a word between ranks; an item whose patches are not known counts
/// as the largest of the others. A rank may have nothing to encode.
///
/// Shares are gathered padded to the longest, in pieces, with what they really hold told before: of
/// items with several towers their final rows, which no other rank can compute.
///
/// @param options `progress` counts the items of this rank's share; `bounds` end its encoding, and
/// with it the call on all ranks.
/// @throws on every rank the same Error, with the rank that failed in front: what Engine::encode
/// throws there, Error(kInvalidArgument) if a rank was called with other items, options or another
/// model. The group then goes on with the next call. If a rank is gone or late, or has no memory to
/// gather with, the group has ended: as Communicator::all_gather_pieces. What `progress` throws, if
/// it is no Error, leaves this call on its own rank, and is Error(kCancelled) on others. The engine
/// is usable afterwards in all cases.
[[nodiscard]] FOVEA_API std::vector<Embedding> encode_on_ranks(Engine& engine, Communicator& ranks,
                                                               std::span<const MediaItem> items,
                                                               const EncodeOptions& options = {});

}  // namespace fovea
