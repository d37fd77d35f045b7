#pragma once

#include <cstdint>

#include <span>
#include <string>
#include "bench/cache/trace.h"
#include "core/json_writer.h"

namespace fovea::cli {

/// The part of an item that takes room in a cache.
enum class Storage : std::uint8_t {
  kCompact,    ///< its rows
  kScattered,  ///< a slot for every position of its placeholder
};

/// The host engine that a trace is replayed on.
struct ReplaySettings {
  Storage storage = Storage::kCompact;
  std::int64_t cache_size = 0;     ///< slots; raised to the largest item
  std::int64_t chunk_size = 8192;  ///< tokens of a step, for all requests; encoder rows as well
  std::int64_t max_running = 16;   ///< requests
  double seconds = 1;              ///< between temporal patches of a video
};

/// The outcome of a trace.
struct ReplayResult {
  std::int64_t capacity = 0;   ///< slots
  std::int64_t peak_held = 0;  ///< most slots that requests held at the end of a step's planning
  std::int64_t peak_used = 0;  ///< most slots that were not free
  std::int64_t items = 0;      ///< of all requests
  std::int64_t hits = 0;       ///< items that their request did not have to encode
  std::int64_t encoded = 0;    ///< times that an item was encoded
  std::int64_t evictions = 0;
  std::int64_t preemptions = 0;
  std::int64_t steps = 0;

  /// hits / items, 0 without items.
  [[nodiscard]] double hit_rate() const;
};

/// Runs every prompt of a trace window by window, as a scheduler with an EncoderCache does: first
/// come, first served; requests that wait hold nothing; the youngest is preempted when nobody can
/// move.
[[nodiscard]] ReplayResult replay(const Trace& trace, const ReplaySettings& settings);

/// A trace replayed once.
struct CacheRun {
  Storage storage = Storage::kCompact;
  std::int64_t cache_size = 0;  ///< slots that were asked for
  ReplayResult result;
};

/// "compact" or "scattered".
[[nodiscard]] std::string storage_name(Storage storage);

/// One line per run: memory, hits, evictions. @param row_bytes of a slot.
[[nodiscard]] std::string cache_table(std::span<const CacheRun> runs, std::int64_t row_bytes);

/// The list "results" of the benchmark's JSON (docs/cli.md).
[[nodiscard]] JsonArray cache_json(std::span<const CacheRun> runs, std::int64_t row_bytes);

}  // namespace fovea::cli
