#pragma once

#include <span>
#include <vector>

#include "fovea/communicator.h"
#include "fovea/embedding.h"
#include "fovea/engine.h"
#include "fovea/export.h"
#include "fovea/media.h"
#include "fovea/row_block.h"

namespace fovea {

/// Encodes items together with the other ranks of a group, each with an engine of its own for the
/// same checkpoint: every rank calls this with the same items and options, encodes its share, and
/// returns all rows, in the order of the items. On a CPU they have the bits of Engine::encode.
///
/// The assignment is that of vLLM: from the item with the most patches to the one with the least,
/// each to the rank with the fewest so far. It follows from descriptions and headers
/// (Engine::plan_items) without a word between ranks; an item whose patches are not known counts
/// as the largest of the others. A rank may have nothing to encode. Ranks whose engines all pack by
/// PackingPolicy::kUnits share large items: each encodes some of their units, which replicas would
/// share, too (docs/ranks.md).
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

/// As above, but writes the rows of items[i] to destinations[i] on every rank, as Engine::encode
/// does for one. Ranks may have their destinations in different places and rows at different
/// distances; room and dtype of each are the same on all of them.
///
/// Rows stay on the GPUs if on every rank Communicator::gather_device(), an engine's device, all
/// destinations and the stream are the same GPU. Each rank then encodes its share into memory of
/// the engine, gathers there with all_gather_on_device() and copies the rows to their destinations,
/// all in the order of the stream: the call returns when this is submitted, and the host has waited
/// for no rows, but for what Engine::encode says, and for memory that grows. That is as much as the
/// ranks together need for the largest share, with every item at the rows that its header tells; an
/// item whose header tells nothing, such as a video in a container, takes the whole room of its
/// destination. Without a stream the default stream of the GPU is used, and waited for.
///
/// In all other cases rows pass through host memory, and are there when the call returns, those on
/// GPUs for what the caller puts on the stream afterwards. Destinations on the host are filled
/// without a copy in between.
///
/// @throws as above and as Engine::encode, on every rank. Where rows stay on the GPUs, no rank
/// begins to gather before all have submitted their share without a failure, and an Error(kDevice)
/// ends the group. The destination of an item that ranks share may hold rows of it if another share
/// has failed. What a GPU reports after the call was submitted is an error of the caller's
/// stream, which other ranks do not learn of: their gather waits for that rank until it calls
/// Communicator::abort() or its process ends. If the call throws, destinations hold anything; if
/// the group has ended, work on the stream may still write to them.
[[nodiscard]] FOVEA_API std::vector<Embedding> encode_on_ranks(
    Engine& engine, Communicator& ranks, std::span<const MediaItem> items,
    std::span<const RowBlock> destinations, const CallerStream& stream,
    const EncodeOptions& options = {});

}  // namespace fovea
