// fovea bench: the benchmarks of the program, one file or folder each.
#include "bench/bench.h"

namespace fovea::cli {

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

}  // namespace fovea::cli
