#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <cstdint>
#include "fovea/embedding.h"
#include "fovea/stats.h"

namespace fovea::cli {

/// One line per item with its sizes, rows and stages, and their sums below.
/// @param differences to the reference, one per item; empty: no such column.
[[nodiscard]] std::string items_table(std::span<const Embedding> items,
                                      std::span<const std::optional<double>> differences);

/// "1.2e-06", "not finite", "-" where there is none.
[[nodiscard]] std::string difference_text(std::optional<double> difference);

/// Says in one line what graphs did for the items. If some items were replayed on some of their
/// paths and ran eagerly on others, it also says what each path did.
[[nodiscard]] std::string graphs_text(const Stats& stats);

/// Says what each of several replicas did, in an indented line per replica; empty for a single one.
[[nodiscard]] std::string replica_lines(std::span<const ReplicaStats> replicas);

/// Says what the encoder cache did, in a line of its own; empty without a cache.
[[nodiscard]] std::string cache_line(const EncoderCacheStats& cache);

/// The differences of an engine's counters between two moments.
struct GraphCounts {
  std::int64_t hits = 0;
  std::int64_t partial = 0;
  std::int64_t misses = 0;
  std::int64_t encoder_calls = 0;  ///< sub-batches
  std::int64_t live_rows = 0;      ///< of replays
  std::int64_t padded_rows = 0;    ///< of replays

  [[nodiscard]] std::int64_t items() const noexcept { return hits + partial + misses; }
  GraphCounts& operator+=(const GraphCounts& other) noexcept;
  /// Share of items whose paths were all replayed; 0 without items.
  [[nodiscard]] double hit_rate() const noexcept;
  /// Share of items of which some paths were replayed and some were not; 0 without items.
  [[nodiscard]] double partial_rate() const noexcept;
  /// Share of the rows of replays that belong to no item; 0 without replays.
  [[nodiscard]] double padding() const noexcept;
};

/// @param after of the same engine as `before`, later.
[[nodiscard]] GraphCounts counts_between(const Stats& before, const Stats& after);

}  // namespace fovea::cli
