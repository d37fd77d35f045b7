// Table and JSON of `fovea bench cache`.
#include "bench/cache/replay.h"

#include "report/table.h"
#include "report/text.h"

namespace fovea::cli {
namespace {

std::string memory_text(std::int64_t slots, std::int64_t row_bytes) {
  return bytes_text(static_cast<std::size_t>(slots * row_bytes));
}

}  // namespace

std::string storage_name(Storage storage) {
  return storage == Storage::kCompact ? "compact" : "scattered";
}

std::string cache_table(std::span<const CacheRun> runs, std::int64_t row_bytes) {
  Table table({{"slots"},
               {"storage", Table::Align::kLeft},
               {"memory"},
               {"used"},
               {"held"},
               {"items"},
               {"encoded"},
               {"hits"},
               {"evicted"},
               {"preempted"},
               {"steps"}});
  for (const CacheRun& run : runs) {
    const ReplayResult& result = run.result;
    table.add_row({std::to_string(result.capacity), storage_name(run.storage),
                   memory_text(result.capacity, row_bytes),
                   memory_text(result.peak_used, row_bytes),
                   memory_text(result.peak_held, row_bytes), std::to_string(result.items),
                   std::to_string(result.encoded), percent(result.hit_rate()),
                   std::to_string(result.evictions), std::to_string(result.preemptions),
                   std::to_string(result.steps)});
  }
  return table.text();
}

JsonArray cache_json(std::span<const CacheRun> runs, std::int64_t row_bytes) {
  JsonArray results;
  for (const CacheRun& run : runs) {
    const ReplayResult& result = run.result;
    results.add(JsonObject{{"storage", storage_name(run.storage)},
                           {"cache_size", run.cache_size},
                           {"capacity", result.capacity},
                           {"capacity_bytes", result.capacity * row_bytes},
                           {"peak_used", result.peak_used},
                           {"peak_held", result.peak_held},
                           {"items", result.items},
                           {"encoded", result.encoded},
                           {"hits", result.hits},
                           {"hit_rate", result.hit_rate()},
                           {"evictions", result.evictions},
                           {"preemptions", result.preemptions},
                           {"steps", result.steps}});
  }
  return results;
}

}  // namespace fovea::cli
