// fovea bench latency: the tower alone on random pixels of fixed sizes, eager and replayed in turn,
// as a fraction of the multiply-add peak measured in the same run.
#include <iostream>
#include <optional>

#include "bench/bench.h"
#include "bench/latency_report.h"
#include "errors.h"
#include "flags/cli11.h"
#include "flags/flags.h"
#include "flags/parse.h"
#include "flags/sizes.h"
#include "fovea/diagnostics.h"
#include "fovea/engine.h"
#include "fovea/version.h"
#include "inputs.h"
#include "output_file.h"
#include "program.h"
#include "progress.h"
#include "report/report_json.h"
#include "report/text.h"

namespace fovea::cli {
namespace {

constexpr double kPeakSeconds = 0.5;
/// The length of the runs without a pause: the slowest counters move 20 times, which leaves 5 %
/// open.
constexpr double kEnergySeconds = 2;

struct LatencyFlags {
  EngineFlags engine;
  std::vector<std::int64_t> patches{64, 256, 1024};
  std::int64_t count = 1;
  std::string sizes;             ///< empty: `cases`
  std::vector<TowerLoad> cases;  ///< empty: `count` images of each of `patches`
  bool equal_frames = false;
  std::vector<std::int64_t> threads;  ///< empty: one run with all
  std::int64_t warmups = 2;
  std::int64_t repetitions = 10;
  std::int64_t host_load = 0;  ///< busy threads beside the run
  std::string output_json;
};

struct LatencyRun {
  std::string device;
  std::vector<Measurement> measurements;
};

std::vector<TowerLoad> cases_of(const LatencyFlags& flags) {
  std::vector<TowerLoad> cases = flags.cases;
  if (!flags.sizes.empty()) cases.push_back({.sizes = parse_sizes(flags.sizes)});
  if (cases.empty()) {
    for (const std::int64_t patches : flags.patches) {
      cases.push_back({.count = flags.count, .patches = patches});
    }
  }
  for (TowerLoad& load : cases) load.equal_frames = flags.equal_frames;
  return cases;
}

/// Reads "20x440" or "1x256x512f".
TowerLoad parse_case(const std::string& text) {
  const auto refuse = [&] {
    throw UsageError("--cases: expected COUNTxPATCHES or COUNTxPATCHESxFRAMESf, got \"" +
                     one_line(text) + "\"");
  };
  const std::size_t cross = text.find('x');
  if (cross == std::string::npos) refuse();
  const std::size_t second = text.find('x', cross + 1);
  TowerLoad load{.count = parse_whole(text.substr(0, cross), 1, "--cases", kMaxEqualItems),
                 .patches = parse_whole(text.substr(cross + 1, second - cross - 1), 1, "--cases",
                                        kMaxPatches)};
  if (second == std::string::npos) return load;
  if (!text.ends_with('f')) refuse();
  load.num_frames =
      parse_whole(text.substr(second + 1, text.size() - second - 2), 1, "--cases", kMaxPatches);
  return load;
}

std::vector<TowerLoad> parse_cases(const std::string& text) {
  std::vector<TowerLoad> cases;
  for (const std::string& part : split_commas(text)) cases.push_back(parse_case(part));
  return cases;
}

/// @throws UsageError naming the flag if no image or video of the model has that many patches.
TowerTiming time_case(const LatencyFlags& flags, Engine& engine, const TowerLoad& load) {
  try {
    return time_tower(engine, load, to_int(flags.warmups, "--warmups"),
                      to_int(flags.repetitions, "--repetitions"));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kInvalidArgument) throw;
    const std::string flag = !load.sizes.empty()   ? "--sizes: "
                             : flags.cases.empty() ? "--patches: "
                                                   : "--cases: ";
    throw UsageError(flag + error.what());
  }
}

/// Measures all cases on an engine with options.num_threads threads.
void measure_threads(const LatencyFlags& flags, const EngineOptions& options, Progress& progress,
                     LatencyRun& run) {
  Engine engine = Engine::load(flags.engine.model, options);
  run.device = engine.device();
  std::optional<double> peak;
  if (run.device.starts_with("cpu")) peak = measure_fma_peak(options.num_threads, kPeakSeconds);
  const HostLoad host_load(flags.host_load);
  for (const TowerLoad& load : cases_of(flags)) {
    progress.advance();
    run.measurements.push_back({.threads = options.num_threads,
                                .load = load,
                                .timing = time_case(flags, engine, load),
                                .energy = measure_tower_energy(engine, load, kEnergySeconds),
                                .peak_gflops = peak});
  }
}

LatencyRun measure(const LatencyFlags& flags, const std::vector<std::int64_t>& threads,
                   Console& console) {
  EngineOptions options = engine_options(flags.engine, console);
  check_limits(flags.engine, options);
  LatencyRun run;
  Progress progress(console, "measuring", std::ssize(threads) * std::ssize(cases_of(flags)));
  for (const std::int64_t number : threads) {
    options.num_threads = to_int(number, "--threads");
    measure_threads(flags, options, progress, run);
  }
  return run;
}

JsonObject json_of(const LatencyFlags& flags, const LatencyRun& run) {
  return {{"benchmark", "latency"},
          {"fovea_version", version()},
          {"model", flags.engine.model},
          {"device", run.device},
          {"warmups", flags.warmups},
          {"repetitions", flags.repetitions},
          {"host_load", flags.host_load},
          {"equal_frames", flags.equal_frames},
          {"results", results_json(run.measurements)}};
}

void print_report(const LatencyFlags& flags, const std::vector<std::int64_t>& threads,
                  const LatencyRun& run) {
  std::cout << timing_table(run.measurements) << "\n";
  if (threads.size() > 1) {
    std::cout << "speed-up over " << threads_text(threads.front()) << "\n"
              << scaling_table(run.measurements, threads) << "\n";
  }
  std::cout << "times in milliseconds, " << counted(flags.repetitions, "repetition")
            << "; GFLOP/s of the faster mode\ndevice  " << run.device << "\n"
            << host_load_line(flags.host_load);
  const std::string energy = energy_table(run.measurements);
  if (!energy.empty()) {
    std::cout << "\nenergy of the GPU in runs without a pause, by its driver's counter\n" << energy;
  }
  for (std::size_t i = 0; i < run.measurements.size(); i += cases_of(flags).size()) {
    const Measurement& m = run.measurements[i];
    if (!m.peak_gflops) continue;
    std::cout << "peak    " << fixed(*m.peak_gflops, 1) << " GFLOP/s of multiply-adds on "
              << threads_text(m.threads) << ", measured in this run\n";
  }
}

int run_latency(const LatencyFlags& flags, Console& console) {
  check_output_paths({flags.output_json}, files_read_for_sizes(flags.engine.model, flags.sizes));
  const std::vector<std::int64_t> threads =
      flags.threads.empty() ? std::vector<std::int64_t>{0} : flags.threads;
  const LatencyRun run = measure(flags, threads, console);
  if (!flags.output_json.empty()) {
    write_text_file(flags.output_json, json_text(json_of(flags, run)));
  }
  print_report(flags, threads, run);
  return kExitOk;
}

void add_flags(CLI::App& verb, LatencyFlags& flags) {
  add_model(verb, flags.engine);
  add_positive_list(verb, "--threads", flags.threads,
                    "CPU threads; a list shows how the tower scales (default: all)", kMaxThreads)
      ->group(kBenchmarkGroup);
  CLI::Option* patches = add_positive_list(verb, "--patches", flags.patches,
                                           "Patches of each image, one run per number", kMaxPatches)
                             ->group(kBenchmarkGroup);
  CLI::Option* count =
      add_positive(verb, "--count", flags.count, "Equal images per run", kMaxEqualItems)
          ->group(kBenchmarkGroup);
  CLI::Option* cases =
      verb.add_option_function<std::string>(
              "--cases", [&flags](const std::string& text) { flags.cases = parse_cases(text); },
              "Numbers of images and patches together, one run per pair; with a number of frames "
              "these "
              "are videos, and patches those of a temporal patch")
          ->type_name("COUNTxPATCHES[xFRAMESf],...")
          ->excludes(patches)
          ->excludes(count)
          ->group(kBenchmarkGroup);
  verb.add_option("--sizes", flags.sizes,
                  "One run of images and videos of these sizes together, as of fovea plan")
      ->type_name("WxH[xNf],...")
      ->excludes(patches)
      ->excludes(count)
      ->excludes(cases)
      ->group(kBenchmarkGroup);
  verb.add_flag("--equal-frames", flags.equal_frames, "A video holds one frame again and again")
      ->group(kBenchmarkGroup);
  add_positive(verb, "--warmups", flags.warmups, "Runs of each kind before the measured ones",
               kMaxRuns)
      ->group(kBenchmarkGroup);
  add_positive(verb, "--repetitions", flags.repetitions, "Measured runs of each kind", kMaxRuns)
      ->group(kBenchmarkGroup);
  add_host_load(verb, flags.host_load);
  add_output_file(verb, "--output-json", flags.output_json, "Write all figures as JSON");
  add_engine_flags(verb, flags.engine);
}

constexpr VerbText kLatencyText{
    .name = "latency",
    .summary = "Time the tower on random pixels",
    .footer = R"(Eager runs and replays alternate, so drift of the machine affects both equally.

Examples:
  fovea bench latency ./Qwen3-VL --load-format dummy --patches 64,256,1024 --threads 1,2,4
  fovea bench latency ./Qwen3-VL --load-format dummy --cases 1x64,1x4096,20x440
  fovea bench latency ./Qwen3-VL --load-format dummy --cases 1x256x512f --packing units)",
};

}  // namespace

void add_bench_latency(CLI::App& bench, Program& program) {
  add_verb(bench, program, kLatencyText, add_flags, run_latency);
}

}  // namespace fovea::cli
