#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fovea/embedding.h"
#include "fovea/stats.h"

namespace fovea::cli {

/// One line per item with its sizes, rows and stages, and their sums below.
/// @param differences to the reference, one per item; empty: no such column.
[[nodiscard]] std::string items_table(std::span<const Embedding> items,
                                      std::span<const std::optional<double>> differences);

/// What graphs did for the items, in one line. If some items were replayed on some of their paths
/// and ran eagerly on others, it also says what each path did.
[[nodiscard]] std::string graphs_text(const Stats& stats);

/// What each of several replicas did, one indented line per replica; empty for a single one.
[[nodiscard]] std::string replica_lines(std::span<const ReplicaStats> replicas);

/// What the encoder cache did, as a line of its own; empty without a cache.
[[nodiscard]] std::string cache_line(const EncoderCacheStats& cache);

}  // namespace fovea::cli
