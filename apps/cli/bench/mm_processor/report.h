#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/mm_processor/runner.h"
#include "core/json_writer.h"

namespace fovea::cli {

/// Name of a percentile in JSON as Python prints it: "p99.0", "p99.9".
[[nodiscard]] std::string percentile_key(double percent);

/// Mean, median, standard deviation and percentiles of every stage of one run. For two runs, both
/// side by side and the time of the first relative to the second.
[[nodiscard]] std::string stage_table(std::span<const WorkloadRun> runs,
                                      std::span<const double> percents);

/// One line per run: answers, rates, graphs.
[[nodiscard]] std::string rates_table(std::span<const WorkloadRun> runs);

/// The figures of one run, under the keys of `vllm bench mm-processor` where it has them
/// (docs/cli.md lists all).
[[nodiscard]] JsonObject figures_json(const WorkloadRun& run, std::span<const double> percents);

}  // namespace fovea::cli
