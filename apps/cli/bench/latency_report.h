#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/json_writer.h"
#include "fovea/diagnostics.h"

namespace fovea::cli {

/// One case on one number of threads.
struct Measurement {
  std::int64_t threads = 0;  ///< 0: all
  TowerLoad load;
  TowerTiming timing;
  std::optional<TowerEnergy> energy;  ///< absent where nothing counts it
  std::optional<double> peak_gflops;  ///< of the processor; absent where another device computes

  /// Time of the faster mode, by median.
  [[nodiscard]] double best_ms() const;
  /// Rate of the faster mode.
  [[nodiscard]] double gflops() const { return timing.flops / best_ms() * 1e-6; }
  /// The energy of a measurement that has one.
  [[nodiscard]] double joules_per_item() const;
  [[nodiscard]] double joules_per_row() const;
};

/// "2 threads", or "all threads" for 0.
[[nodiscard]] std::string threads_text(std::int64_t threads);

/// One line per measurement: percentiles of both modes, rate and share of the peak.
[[nodiscard]] std::string timing_table(std::span<const Measurement> measurements);

/// One line per measurement whose energy is known: what a run takes, of time and of energy. Empty
/// if there is none.
[[nodiscard]] std::string energy_table(std::span<const Measurement> measurements);

/// How much faster each case gets with more threads, relative to the first number of the list.
/// @param measurements all cases on threads[0], then all on threads[1], and so on.
[[nodiscard]] std::string scaling_table(std::span<const Measurement> measurements,
                                        std::span<const std::int64_t> threads);

/// The list "results" of the benchmark's JSON (docs/cli.md).
[[nodiscard]] JsonArray results_json(std::span<const Measurement> measurements);

}  // namespace fovea::cli
