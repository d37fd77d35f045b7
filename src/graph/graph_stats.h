#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/log.h"
#include "fovea/stats.h"
#include "graph/graph_config.h"

namespace fovea {

/// Why a path ran eagerly. Order: when several hold for one path, the first one is counted.
enum class MissReason : std::uint8_t {
  kDisabled,             ///< graphs are off
  kRequested,            ///< the caller asked for an eager run
  kTeam,                 ///< several devices computed it together
  kUnsupportedModality,  ///< the model's graphs do not serve it
  kPruning,              ///< rows of videos are pruned
  kPrecomputed,          ///< the item came as embeddings
  kFrames,               ///< more attention sequences than the graphs hold
  kOversized,            ///< more tokens than the largest budget
  kNotCaptured,          ///< the graph does not exist (yet)
  kCapacity,             ///< an input buffer is too small
  kSlower,               ///< measured: eager is faster than this graph
};
inline constexpr std::size_t kNumMissReasons = 11;

/// "oversized" and so on: keys of Stats::miss_reasons.
[[nodiscard]] std::string_view to_string(MissReason reason) noexcept;

/// Counters of one manager. Counting allocates nothing. Not thread-safe.
class GraphStats {
 public:
  explicit GraphStats(const GraphSpec& spec);

  /// How all units of an item ran.
  struct ItemRuns {
    bool replayed = false;                                    ///< any of them
    std::array<std::optional<MissReason>, kMaxPaths> misses;  ///< per path, of the first eager one

    /// Some units on a path ran. @param miss why eagerly; absent: they were replayed.
    void add(PathId path, std::optional<MissReason> miss) noexcept;
    [[nodiscard]] GraphUse use() const noexcept;
  };
  /// Counts an item once all of it has run, and the reason of the first path with units that ran
  /// eagerly.
  void count_item(const ItemRuns& runs);
  void count_skipped(std::int64_t items) { skipped_ += items; }
  void count_sub_batch() { ++sub_batches_; }
  void count_reused_unit() { ++units_reused_; }
  void count_replay(PathId path, std::span<const ItemPart> parts, std::int64_t capacity);
  void count_eager(PathId path);

  /// Writes one debug line if the number of counted items has crossed a multiple of `interval`
  /// since the last call.
  void log_progress(LogSink* log, std::int64_t interval);

  /// Counters as the public struct; budgets and bytes are the manager's to add.
  [[nodiscard]] Stats snapshot() const;

 private:
  struct PathCounters {
    std::int64_t replays = 0;
    std::int64_t replayed_items = 0;
    std::int64_t eager_runs = 0;
    std::int64_t live_rows = 0;
    std::int64_t padded_rows = 0;
  };
  [[nodiscard]] std::int64_t counted() const { return hits_ + partial_ + misses_; }

  std::vector<std::string> path_names_;
  std::vector<PathCounters> paths_;
  std::int64_t hits_ = 0;
  std::int64_t partial_ = 0;
  std::int64_t misses_ = 0;
  std::int64_t skipped_ = 0;
  std::int64_t sub_batches_ = 0;
  std::int64_t units_reused_ = 0;
  std::int64_t logged_ = 0;  // counted() at the last call of log_progress
  std::array<std::int64_t, kNumMissReasons> reasons_{};
};

}  // namespace fovea
