// fovea bench throughput: the whole way from files to rows, again and again.
#include <algorithm>
#include <iostream>
#include <optional>

#include "bench/bench.h"
#include "bench/samples.h"
#include "core/stopwatch.h"
#include "errors.h"
#include "flags/cli11.h"
#include "flags/flags.h"
#include "fovea/diagnostics.h"
#include "fovea/engine.h"
#include "fovea/option_table.h"
#include "fovea/version.h"
#include "inputs.h"
#include "output_file.h"
#include "program.h"
#include "progress.h"
#include "report/encode_report.h"
#include "report/report_json.h"
#include "report/table.h"
#include "report/text.h"

namespace fovea::cli {
namespace {

struct ThroughputFlags {
  EngineFlags engine;
  InputFlags inputs;
  std::int64_t repeat = 5;
  std::int64_t warmups = 1;
  std::string output_json;
};

/// Samples of all repetitions that count.
struct ThroughputRun {
  std::string device;
  Stats stats;                                               ///< since the engine was loaded
  GraphCounts counts;                                        ///< of the repetitions
  std::size_t items = 0;                                     ///< per repetition
  std::int64_t rows = 0;                                     ///< per repetition
  std::optional<PowerReading> power;                         ///< while repetitions ran
  std::vector<double> run_ms;                                ///< one per repetition
  std::array<std::vector<double>, kStages.size()> stage_ms;  ///< one per item and repetition

  [[nodiscard]] double per_second(double count) const {
    return count * 1e3 / percentile(run_ms, 50);
  }
  /// The energy of a repetition, on average, if `power` is known.
  [[nodiscard]] double joules() const { return power->watts * summarize(run_ms).mean / 1e3; }
};

ThroughputRun measure(const ThroughputFlags& flags, std::span<const Input> inputs,
                      Console& console) {
  const EngineOptions options = engine_options(flags.engine, console);
  check_limits(flags.engine, options);
  Engine engine = Engine::load(flags.engine.model, options);
  ThroughputRun run;
  run.device = engine.device();
  run.items = inputs.size();
  Progress progress(console, "encoding", flags.warmups + flags.repeat);
  engine.warm_up();
  Stats before;
  std::optional<EnergyWatch> energy;
  for (std::int64_t i = 0; i < flags.warmups + flags.repeat; ++i) {
    if (i == flags.warmups) {
      before = engine.stats();
      energy.emplace(engine);
    }
    const Stopwatch watch;
    const std::vector<Embedding> items = encode_inputs(engine, inputs, {});
    const double elapsed_ms = watch.elapsed_ms();
    progress.advance();
    if (i < flags.warmups) continue;
    run.run_ms.push_back(elapsed_ms);
    run.rows = 0;
    for (const Embedding& item : items) {
      run.rows += item.rows;
      for (std::size_t s = 0; s < kStages.size(); ++s) {
        run.stage_ms[s].push_back(item.times.*kStages[s].ms);
      }
    }
  }
  run.power = energy->stop();
  run.stats = engine.stats();
  run.counts = counts_between(before, run.stats);
  return run;
}

std::string stage_table(const ThroughputRun& run) {
  Table table({{"stage", Table::Align::kLeft}, {"mean ms"}, {"p50 ms"}, {"p99 ms"}});
  for (std::size_t s = 0; s < kStages.size(); ++s) {
    const Summary summary = summarize(run.stage_ms[s]);
    table.add_row({std::string(kStages[s].name), fixed(summary.mean, 3), fixed(summary.median, 3),
                   fixed(summary.p99, 3)});
  }
  const Summary all = summarize(run.run_ms);
  table.add_rule();
  table.add_row({"whole run", fixed(all.mean, 3), fixed(all.median, 3), fixed(all.p99, 3)});
  return table.text();
}

std::optional<JsonObject> energy_json(const ThroughputRun& run) {
  if (!run.power) return std::nullopt;
  return JsonObject{{"watts", run.power->watts},
                    {"joules", run.joules()},
                    {"joules_per_item", run.joules() / static_cast<double>(run.items)},
                    {"joules_per_row", run.joules() / static_cast<double>(run.rows)},
                    {"uncertainty", run.power->uncertainty}};
}

/// A line of the report; empty where nothing counts energy.
std::string energy_line(const ThroughputRun& run) {
  if (!run.stats.energy_joules) return {};
  if (!run.power) return "energy  not known: the runs were too short, see --repeat\n";
  return "energy  " + fixed(run.power->watts, 0) + " W of the GPU, " +
         fixed(run.joules() / static_cast<double>(run.items), 3) + " J per item, " +
         fixed(1e3 * run.joules() / static_cast<double>(run.rows), 3) + " mJ per row, +- " +
         percent(run.power->uncertainty) + "\n";
}

JsonObject json_of(const ThroughputFlags& flags, const ThroughputRun& run) {
  JsonObject stages;
  for (std::size_t s = 0; s < kStages.size(); ++s) {
    stages.set(std::string(kStages[s].name) + "_ms", to_json(summarize(run.stage_ms[s])));
  }
  return {{"benchmark", "throughput"},
          {"fovea_version", version()},
          {"model", flags.engine.model},
          {"device", run.device},
          {"media_profile", value_name(flags.engine.options.media.profile)},
          {"jpeg_scaling", flags.engine.options.media.jpeg_scaling},
          {"warmups", flags.warmups},
          {"repetitions", flags.repeat},
          {"items", run.items},
          {"rows", run.rows},
          {"items_per_s", run.per_second(static_cast<double>(run.items))},
          {"rows_per_s", run.per_second(static_cast<double>(run.rows))},
          {"run_ms", to_json(summarize(run.run_ms))},
          {"energy", energy_json(run)},
          {"stages", stages},
          {"hit_rate", run.counts.hit_rate()},
          {"graph_hits", run.counts.hits},
          {"graph_partial", run.counts.partial},
          {"graph_misses", run.counts.misses},
          {"stats", to_json(run.stats)}};
}

int run_throughput(const ThroughputFlags& flags, Console& console) {
  const std::vector<Input> inputs =
      expand_inputs(flags.inputs.in_order, item_defaults(flags.inputs, flags.engine.options.media));
  check_output_paths({flags.output_json},
                     files_read(flags.engine.model, flags.inputs.in_order, inputs));
  require_all(inputs);
  const ThroughputRun run = measure(flags, inputs, console);
  if (!flags.output_json.empty()) {
    write_text_file(flags.output_json, json_text(json_of(flags, run)));
  }
  std::cout << stage_table(run) << "\n"
            << fixed(run.per_second(static_cast<double>(run.items)), 1) << " items/s, "
            << fixed(run.per_second(static_cast<double>(run.rows)), 1) << " rows/s  ("
            << counted(static_cast<std::int64_t>(run.items), "item") << ", "
            << counted(run.rows, "row") << ", median of " << counted(flags.repeat, "run") << ")\n"
            << "graphs  " << percent(run.counts.hit_rate()) << " of items replayed"
            << (run.counts.partial > 0 ? ", " + percent(run.counts.partial_rate()) + " in part"
                                       : "")
            << "\n"
            << "device  " << run.device << "\n"
            << energy_line(run);
  return kExitOk;
}

void add_flags(CLI::App& verb, ThroughputFlags& flags) {
  add_model(verb, flags.engine);
  add_input_flags(verb, flags.inputs);
  add_positive(verb, "--repeat", flags.repeat, "Measured runs", kMaxRuns)->group(kBenchmarkGroup);
  add_positive(verb, "--warmups", flags.warmups, "Runs before the measured ones", kMaxRuns)
      ->group(kBenchmarkGroup);
  add_output_file(verb, "--output-json", flags.output_json, "Write all figures as JSON");
  add_threads(verb, flags.engine);
  add_decode_processes(verb, flags.engine);
  add_engine_flags(verb, flags.engine);
}

constexpr VerbText kThroughputText{
    .name = "throughput",
    .summary = "Time everything from files to rows",
    .footer =
        R"(Stage times are per item; items prepared on several threads overlap, so the sum of the
stages may exceed the time of the run.

Example:
  fovea bench throughput ./Qwen3-VL photos/ --repeat 20 --output-json result.json)",
};

}  // namespace

void add_bench_throughput(CLI::App& bench, Program& program) {
  add_verb(bench, program, kThroughputText, add_flags, run_throughput);
}

}  // namespace fovea::cli
