#pragma once

#include "program.h"

namespace fovea::cli {

/// The heading of --help for what is measured and how often.
inline constexpr const char* kBenchmarkGroup = "Benchmark";

/// Each adds one benchmark below the verb `bench`.
void add_bench_cache(CLI::App& bench, Program& program);
void add_bench_capture(CLI::App& bench, Program& program);
void add_bench_latency(CLI::App& bench, Program& program);
void add_bench_mm_processor(CLI::App& bench, Program& program);
void add_bench_serve(CLI::App& bench, Program& program);
void add_bench_throughput(CLI::App& bench, Program& program);

}  // namespace fovea::cli
