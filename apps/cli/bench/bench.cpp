// fovea bench: the benchmarks of the program, one file or folder each.
#include "bench/bench.h"
#include <system_error>
#include "flags/cli11.h"
#include "fovea/error.h"
#include "report/text.h"

namespace fovea::cli {
namespace {

void compute_until(const std::stop_token& stop) {
  constexpr int kStepsPerLook = 10'000;
  volatile std::uint64_t state = 1;  // volatile: the result is not needed, the work is
  while (!stop.stop_requested()) {
    for (int step = 0; step < kStepsPerLook; ++step) state = state * 6364136223846793005u + 1;
  }
}

}  // namespace

void add_bench(CLI::App& app, Program& program) {
  CLI::App* verb = app.add_subcommand("bench",
                                      "Measure: capture, the tower, requests stage by stage, "
                                      "throughput of files, many clients, an encoder cache");
  verb->require_subcommand(1);
  verb->footer(
      "Examples:\n"
      "  fovea bench latency ./Qwen3-VL --patches 64,256,1024\n"
      "  fovea bench mm-processor ./Qwen3-VL --num-prompts 100 --compare\n"
      "  fovea bench throughput ./Qwen3-VL photos/ --repeat 5\n"
      "  fovea bench cache --shapes 384x4");
  add_bench_cache(*verb, program);
  add_bench_capture(*verb, program);
  add_bench_latency(*verb, program);
  add_bench_mm_processor(*verb, program);
  add_bench_serve(*verb, program);
  add_bench_throughput(*verb, program);
  for (CLI::App* benchmark : verb->get_subcommands({})) benchmark->group("Verbs");
}

HostLoad::HostLoad(std::int64_t num_threads) {
  try {
    while (static_cast<std::int64_t>(threads_.size()) < num_threads) {
      threads_.emplace_back(compute_until);
    }
  } catch (const std::system_error& error) {
    throw Error(ErrorCode::kIo, "cannot start busy thread " + std::to_string(threads_.size() + 1) +
                                    " of " + std::to_string(num_threads) + ": " +
                                    error.code().message());
  }
}

void add_host_load(CLI::App& verb, std::int64_t& num_threads) {
  add_positive(verb, "--host-load", num_threads,
               "Busy threads beside the measured runs, as on a machine shared with others",
               kMaxThreads)
      ->group(kBenchmarkGroup);
}

std::string host_load_line(std::int64_t num_threads) {
  if (num_threads == 0) return {};
  return "host    " + counted(num_threads, "busy thread") + " beside the run\n";
}

}  // namespace fovea::cli
