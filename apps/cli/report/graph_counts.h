#pragma once

#include <cstdint>

#include "fovea/stats.h"

namespace fovea::cli {

/// What the engine counted between two moments.
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
