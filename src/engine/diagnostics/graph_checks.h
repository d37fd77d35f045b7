#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/replicas/replica_session.h"
#include "fovea/diagnostics.h"
#include "fovea/embedding.h"
#include "fovea/tower/models/encoder_graph_model.h"
#include "graph/capture/budget_graph.h"
#include "graph/graph_config.h"

namespace fovea {

/// Plans of images of several sizes that together have up to `tokens` tokens, as many as they can,
/// and that greedy packing puts into the graph of `key` and no smaller one: each image takes about
/// half of what is left, but no more than kTypicalTokens unless the items are too few. If packing
/// would take these apart, larger or equal ones. Empty if no images do.
[[nodiscard]] std::vector<ItemPlan> mixed_load(const EncoderGraphModel& model,
                                               const GraphConfig& config, const GraphKey& key,
                                               std::int64_t tokens);

/// The rows that one replica gives.
[[nodiscard]] std::vector<Embedding> encode_on(Replica& replica,
                                               std::span<const PreparedItem* const> items,
                                               const EncodeOptions& how);

/// One check per size at which a graph of the replica's configuration is recorded: a mixed_load of
/// random bytes gives the same
/// rows replayed and run eagerly. Skipped where no images load a graph or there was no memory for
/// it.
/// @param place appended to the names. @param tolerance as check_equal.
[[nodiscard]] std::vector<Check> check_graphs(Replica& replica, const std::string& place,
                                              double tolerance);

}  // namespace fovea
