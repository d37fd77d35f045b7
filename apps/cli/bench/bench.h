#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>
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

/// Threads that keep processors busy from construction to destruction, as other programs on a
/// shared machine do. They only compute: no memory, no lock.
class HostLoad {
 public:
  /// @throws Error(kIo) if the system cannot start that many threads; those that run are ended.
  explicit HostLoad(std::int64_t num_threads);

 private:
  std::vector<std::jthread> threads_;
};

/// Adds the flag --host-load, for the constructor above; 0 without it.
void add_host_load(CLI::App& verb, std::int64_t& num_threads);

/// A line of a report, "host    96 busy threads beside the run"; empty for 0.
[[nodiscard]] std::string host_load_line(std::int64_t num_threads);

}  // namespace fovea::cli
