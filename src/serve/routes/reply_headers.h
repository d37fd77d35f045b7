#pragma once

#include "serve/http/message.h"
#include "serve/service/service.h"

namespace fovea::serve {

/// The headers that say how a request was encoded, made before its rows are moved into a body:
///   X-Fovea-Rows   rows of all items
///   X-Fovea-Cache  items by their use of the encoder cache, "hit=1,join=0,miss=2,bypass=0"; an
///   item
///                  that asked no cache has gone past it
///   X-Fovea-Graph  items by their use of graphs, "hit=2,partial=0,miss=0"; an item without work
///   for
///                  the tower is none of these
///   Server-Timing  milliseconds of `fetch`, `decode`, `prep` (resizing and packing), `queue`,
///                  `encode` and `total`; stages are summed over the items, which overlap
/// Source: W3C, Server Timing; docs/serving.md.
/// @param reply of a job without an error. @param arrival of the request.
[[nodiscard]] Headers encoding_headers(const JobReply& reply, double fetch_ms,
                                       Clock::time_point arrival);

}  // namespace fovea::serve
