#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "bench/cache/replay.h"
#include "core/json_writer.h"

namespace fovea::cli {

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
