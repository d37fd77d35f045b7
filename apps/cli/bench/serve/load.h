#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <string>
#include "core/json_writer.h"
#include "fovea/batcher.h"

namespace fovea::cli {

/// Requests of one item each, and who sends them.
struct ServeLoad {
  std::span<const MediaItem> items;  ///< one per request
  std::int64_t clients = 8;          ///< each sends a request when it has the rows of its last
  /// Requests per second, at moments that depend on nothing (a Poisson process), instead of
  /// clients. Absent: clients.
  std::optional<double> rate;
  std::uint64_t seed = 0;  ///< of these moments
};

/// The outcome of a load.
struct ServeRun {
  std::vector<double> latency_ms;  ///< of each request that got its rows, in no order
  std::int64_t refused = 0;        ///< for want of room
  double seconds = 0;              ///< from the first request to the last reply
  BatcherStats stats;              ///< of the batcher, if there was one

  [[nodiscard]] double per_second() const {
    return seconds > 0 ? static_cast<double>(latency_ms.size()) / seconds : 0;
  }
};

/// All items in one call: what there is to reach.
[[nodiscard]] ServeRun run_one_call(Engine& engine, const ServeLoad& load);
/// Clients that call the engine themselves, a thread each.
[[nodiscard]] ServeRun run_on_engine(Engine& engine, const ServeLoad& load);
/// The load on a batcher of its own.
[[nodiscard]] ServeRun run_on_batcher(Engine& engine, const ServeLoad& load,
                                      const BatcherOptions& options);

/// Moments of `count` arrivals, `rate` per second on average, independent of each other; seconds
/// after the beginning, ascending.
[[nodiscard]] std::vector<double> arrivals(std::int64_t count, double rate, std::uint64_t seed);

/// A load that was run in one way.
struct ServeResult {
  std::string way;                       ///< "one call", "engine" or "batcher"
  std::optional<std::int64_t> delay_us;  ///< of a batcher
  ServeRun run;
};

/// One line per result: throughput, latencies, how full batches were. The first is what the others
/// are compared with.
[[nodiscard]] std::string serve_table(std::span<const ServeResult> results);

/// The list "results" of the benchmark's JSON (docs/cli.md).
[[nodiscard]] JsonArray serve_json(std::span<const ServeResult> results);

}  // namespace fovea::cli
