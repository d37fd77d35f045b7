#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fovea {

/// What one path (tower) of the encoder did.
struct PathStats {
  std::string name;
  std::vector<std::int64_t> token_budgets;
  std::int64_t replays = 0;
  /// Items in those replays; one whose units run in several replays counts in each.
  std::int64_t replayed_items = 0;
  std::int64_t eager_runs = 0;
  std::int64_t live_rows = 0;    ///< tokens of real items in replays
  std::int64_t padded_rows = 0;  ///< capacity of the replays minus live_rows
};

/// A captured graph: what it costs, and its measured times.
struct GraphReport {
  std::string path;
  std::int64_t budget = 0;
  double capture_ms = 0;             ///< warm-up runs and recording
  std::int64_t recording_bytes = 0;  ///< device memory of its own
  std::int64_t shared_bytes = 0;     ///< its part of the memory that all graphs share
  /// Milliseconds under a full load, replayed and eager; both 0 if not measured.
  double replay_ms = 0;
  double eager_ms = 0;
  bool stored_times = false;  ///< both were measured by an earlier process
};

/// One kind of memory of an encoder cache. Rows lie in one of them at a time.
struct CacheTierStats {
  std::int64_t capacity_bytes = 0;  ///< 0: there is none of it
  std::int64_t bytes = 0;           ///< of the rows that are here
  std::int64_t items = 0;
  std::int64_t hits = 0;       ///< items whose rows were found here
  std::int64_t misses = 0;     ///< items that were looked for here, and were not, or not yet
  std::int64_t evictions = 0;  ///< items that had to leave, for the host or for good
};

/// What became of the items that an encoder cache looked for in the place where several processes
/// share rows, and of those that it gave there.
struct SharedRowsStats {
  bool is_asked = true;         ///< else it is passed over, as it has not answered
  std::int64_t hits = 0;        ///< items whose rows were there
  std::int64_t misses = 0;      ///< items whose rows were not there, or not whole
  std::int64_t skipped = 0;     ///< items that it was not asked for, or gave no answer for in time
  std::int64_t stored = 0;      ///< items that it has got
  std::int64_t not_stored = 0;  ///< items that it has not got: gone before, refused, too late
};

/// What the encoder cache did for an item, as EncoderCacheStats counts items.
enum class CacheUse : std::uint8_t {
  kNotAsked,  ///< there is none, or the call went past it
  kHit,       ///< the rows were there, or shared, or another item of the call has the same
  kJoin,      ///< another call was encoding the same item
  kMiss,      ///< encoded and kept, or failed
  kBypass,    ///< encoded and not kept
};

/// What the encoder cache of an engine holds, and what became of the items that asked it. An item
/// counts once, as exactly one of hit, join, miss and bypass, when that is known.
struct EncoderCacheStats {
  std::int64_t capacity_bytes = 0;  ///< 0: there is no cache, and nothing is counted
  std::int64_t bytes = 0;           ///< of the rows that are here
  std::int64_t freeable_bytes = 0;  ///< of rows that nobody reads at the moment
  std::int64_t rows = 0;
  std::int64_t items = 0;
  std::int64_t queries = 0;
  std::int64_t hits = 0;       ///< the rows were here, or shared, or are those of another item
  std::int64_t joins = 0;      ///< another call was encoding the same item
  std::int64_t misses = 0;     ///< encoded and kept, or failed
  std::int64_t bypasses = 0;   ///< encoded and not kept: no room, a long video, a changed file
  std::int64_t evictions = 0;  ///< items that are nowhere any more
  std::int64_t waiting = 0;    ///< for rows that another call encodes, at the moment
  CacheTierStats device;       ///< of all devices together
  CacheTierStats host;
  std::optional<SharedRowsStats> shared;  ///< absent: rows are shared nowhere

  /// Part of the items that were not encoded, 0 without items.
  [[nodiscard]] double hit_rate() const {
    const std::int64_t all = hits + joins + misses + bypasses;
    return all == 0 ? 0.0 : static_cast<double>(hits + joins) / static_cast<double>(all);
  }
};

/// How the tower ran for an item, as Stats counts items.
enum class GraphUse : std::uint8_t {
  kNone,     ///< not at all: no tokens, finished rows, rows of the cache
  kHit,      ///< every path by replay
  kPartial,  ///< some paths or units by replay, some eagerly
  kMiss,     ///< eagerly
};

/// Counters since the engine was built. An item counts once, as exactly one of hit, partial, miss
/// and skipped.
struct Stats {
  std::int64_t graph_hits = 0;     ///< all units on all paths were replayed
  std::int64_t graph_partial = 0;  ///< some were replayed, some ran eagerly
  std::int64_t graph_misses = 0;   ///< none was replayed
  std::int64_t skipped = 0;        ///< nothing to compute: no tokens, precomputed or cached rows
  std::int64_t num_budgets = 0;    ///< captured graphs over all paths
  std::vector<std::int64_t> token_budgets;
  std::int64_t sub_batches = 0;
  /// Units whose rows are those of another unit of their call that holds the same pixels.
  std::int64_t units_reused = 0;
  /// Reason code -> number of items that were not replayed on all paths; "precomputed" counts
  /// skipped items that came as rows.
  std::map<std::string, std::int64_t> miss_reasons;
  std::vector<PathStats> paths;
  double capture_seconds = 0;  ///< of several replicas: of the one that took longest
  std::int64_t graph_bytes = 0;
  std::vector<GraphReport> graphs;  ///< in order of capture
  EncoderCacheStats encoder_cache;
  /// What all GPUs of the engine have taken, by the counter of their driver, whoever used them;
  /// absent if one of them has none, on a CPU, and in the counters of a replica.
  std::optional<double> energy_joules;

  /// hits / (hits + partial + misses), 0 without items.
  [[nodiscard]] double hit_rate() const {
    const std::int64_t all = graph_hits + graph_partial + graph_misses;
    return all == 0 ? 0.0 : static_cast<double>(graph_hits) / static_cast<double>(all);
  }
};

/// Counters of one replica of an engine that spreads items over several devices.
struct ReplicaStats {
  std::string device;  ///< "cpu" or "cuda:<index>"
  Stats stats;
  std::int64_t host_waits = 0;  ///< how often a thread has waited for work on the device
};

}  // namespace fovea
