#pragma once

#include <span>
#include <string>

#include "bench/serve/load.h"
#include "core/json_writer.h"

namespace fovea::cli {

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
