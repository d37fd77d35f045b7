// fovea bench latency: the tower alone on random pixels of fixed sizes, eager and replayed in turn,
// as a fraction of the multiply-add peak measured in the same run.
#include <algorithm>
#include <iostream>
#include <optional>

#include "bench/samples.h"
#include "cli11.h"
#include "errors.h"
#include "flags.h"
#include "fovea/diagnostics.h"
#include "fovea/engine.h"
#include "fovea/version.h"
#include "inputs.h"
#include "model_limits.h"
#include "output_file.h"
#include "parse.h"
#include "progress.h"
#include "report/report_json.h"
#include "report/svg_chart.h"
#include "report/table.h"
#include "report/text.h"
#include "verb.h"

namespace fovea::cli {
namespace {

constexpr double kPeakSeconds = 0.5;

/// Equal pictures that run together.
struct LatencyCase {
  std::int64_t count = 1;
  std::int64_t patches = 0;  ///< of one picture
};

struct LatencyFlags {
  EngineFlags engine;
  std::vector<std::int64_t> patches{64, 256, 1024};
  std::int64_t count = 1;
  std::vector<LatencyCase> cases;     ///< empty: `count` pictures of each of `patches`
  std::vector<std::int64_t> threads;  ///< empty: one run with all
  std::int64_t warmups = 2;
  std::int64_t repetitions = 10;
  std::string output_json;
  std::string plot;
};

/// One case on one number of threads.
struct Measurement {
  std::int64_t threads = 0;  ///< 0: all
  LatencyCase what;
  TowerTiming timing;
  std::optional<double> peak_gflops;  ///< of the processor; absent where another device computes

  /// The faster of the two ways, by median.
  [[nodiscard]] double best_ms() const {
    const double eager = percentile(timing.eager_ms, 50);
    return timing.replay_ms.empty() ? eager : std::min(eager, percentile(timing.replay_ms, 50));
  }
  [[nodiscard]] double gflops() const { return timing.flops / best_ms() * 1e-6; }
};

struct LatencyRun {
  std::string device;
  std::vector<Measurement> measurements;
};

std::vector<LatencyCase> cases_of(const LatencyFlags& flags) {
  if (!flags.cases.empty()) return flags.cases;
  std::vector<LatencyCase> cases;
  for (const std::int64_t patches : flags.patches) cases.push_back({flags.count, patches});
  return cases;
}

/// Reads "1x64,20x440": number of pictures x patches of each.
std::vector<LatencyCase> parse_cases(const std::string& text) {
  std::vector<LatencyCase> cases;
  for (const std::string& part : split_commas(text)) {
    const std::size_t cross = part.find('x');
    if (cross == std::string::npos) {
      throw UsageError("--cases: expected COUNTxPATCHES, got \"" + one_line(part) + "\"");
    }
    cases.push_back({.count = parse_whole(part.substr(0, cross), 1, "--cases"),
                     .patches = parse_whole(part.substr(cross + 1), 1, "--cases")});
  }
  return cases;
}

std::string case_text(const LatencyCase& what) {
  return std::to_string(what.count) + " x " + std::to_string(what.patches);
}

/// Measures all cases on an engine with options.num_threads threads.
void measure_threads(const LatencyFlags& flags, const EngineOptions& options, Progress& progress,
                     LatencyRun& run) {
  Engine engine = Engine::load(flags.engine.model, options);
  run.device = engine.device();
  std::optional<double> peak;
  if (run.device.starts_with("cpu")) peak = measure_fma_peak(options.num_threads, kPeakSeconds);
  for (const LatencyCase& what : cases_of(flags)) {
    progress.advance();
    run.measurements.push_back(
        {.threads = options.num_threads,
         .what = what,
         .timing = time_tower(engine, what.patches, what.count, to_int(flags.warmups, "--warmups"),
                              to_int(flags.repetitions, "--repetitions")),
         .peak_gflops = peak});
  }
}

LatencyRun measure(const LatencyFlags& flags, const std::vector<std::int64_t>& threads,
                   Console& console) {
  EngineOptions options = engine_options(flags.engine, console);
  check_limits(flags.engine.model, options);
  LatencyRun run;
  Progress progress(console, "measuring", std::ssize(threads) * std::ssize(cases_of(flags)));
  for (const std::int64_t number : threads) {
    options.num_threads = to_int(number, "--threads");
    measure_threads(flags, options, progress, run);
  }
  return run;
}

std::string threads_text(std::int64_t threads) {
  return threads == 0 ? "all threads" : counted(threads, "thread");
}

std::string timing_table(const LatencyRun& run) {
  Table table({{"threads"},
               {"patches"},
               {"rows"},
               {"budget"},
               {"eager p50"},
               {"eager p90"},
               {"eager p99"},
               {"replay p50"},
               {"replay p90"},
               {"replay p99"},
               {"GFLOP/s"},
               {"of peak"}});
  for (const Measurement& m : run.measurements) {
    const Summary eager = summarize(m.timing.eager_ms);
    const Summary replay = summarize(m.timing.replay_ms);
    const auto replay_ms = [&](double value) {
      return m.timing.replay_ms.empty() ? std::string("-") : fixed(value, 2);
    };
    table.add_row(
        {m.threads == 0 ? "all" : std::to_string(m.threads), case_text(m.what),
         std::to_string(m.timing.rows), m.timing.budget > 0 ? std::to_string(m.timing.budget) : "-",
         fixed(eager.median, 2), fixed(eager.p90, 2), fixed(eager.p99, 2), replay_ms(replay.median),
         replay_ms(replay.p90), replay_ms(replay.p99), fixed(m.gflops(), 1),
         m.peak_gflops ? percent(m.gflops() / *m.peak_gflops) : "-"});
  }
  return table.text();
}

/// How much faster each size gets with more threads, relative to the first of the list.
std::string scaling_table(const LatencyRun& run, const std::vector<std::int64_t>& threads) {
  std::vector<Table::Column> columns{{"patches"}};
  for (const std::int64_t n : threads) columns.push_back({threads_text(n)});
  Table table(columns);
  const std::size_t sizes = run.measurements.size() / threads.size();
  for (std::size_t size = 0; size < sizes; ++size) {
    const Measurement& first = run.measurements[size];
    std::vector<std::string> cells{case_text(first.what)};
    for (std::size_t t = 0; t < threads.size(); ++t) {
      const Measurement& m = run.measurements[t * sizes + size];
      cells.push_back(fixed(first.best_ms() / m.best_ms(), 2) + "x");
    }
    table.add_row(std::move(cells));
  }
  return table.text();
}

bool same_count(const Measurement& a, const Measurement& b) { return a.what.count == b.what.count; }
bool same_threads(const Measurement& a, const Measurement& b) { return a.threads == b.threads; }

/// One line per way to run, number of pictures and number of threads; names leave out what is the
/// same everywhere.
LineChart chart_of(const LatencyRun& run) {
  const auto all = [&](bool (*same)(const Measurement&, const Measurement&)) {
    return std::all_of(run.measurements.begin(), run.measurements.end(),
                       [&](const Measurement& m) { return same(m, run.measurements.front()); });
  };
  const bool one_count = all(same_count);
  const bool one_thread_count = all(same_threads);
  LineChart chart{.title = "Latency of the tower, median",
                  .x_label = "patches per item",
                  .y_label = "milliseconds",
                  .x_scale = Scale::kLog,
                  .y_scale = Scale::kLog,
                  .series = {}};
  const auto line = [&](const Measurement& m, const std::string& name) -> LineSeries& {
    const std::string full = name + (one_count ? "" : ", " + counted(m.what.count, "picture")) +
                             (one_thread_count ? "" : ", " + threads_text(m.threads));
    const auto same = [&](const LineSeries& series) { return series.name == full; };
    const auto found = std::find_if(chart.series.begin(), chart.series.end(), same);
    return found != chart.series.end() ? *found : chart.series.emplace_back(LineSeries{full, {}});
  };
  for (const Measurement& m : run.measurements) {
    const auto x = static_cast<double>(m.what.patches);
    line(m, "eager").points.emplace_back(x, percentile(m.timing.eager_ms, 50));
    if (!m.timing.replay_ms.empty()) {
      line(m, "replay").points.emplace_back(x, percentile(m.timing.replay_ms, 50));
    }
  }
  for (LineSeries& series : chart.series) std::sort(series.points.begin(), series.points.end());
  return chart;
}

nlohmann::ordered_json json_of(const LatencyFlags& flags, const LatencyRun& run) {
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  for (const Measurement& m : run.measurements) {
    nlohmann::ordered_json entry = {{"threads", m.threads},
                                    {"count", m.what.count},
                                    {"patches", m.what.patches},
                                    {"rows", m.timing.rows},
                                    {"token_budget", m.timing.budget},
                                    {"flops", m.timing.flops},
                                    {"eager_ms", to_json(summarize(m.timing.eager_ms))},
                                    {"replay_ms", nullptr},
                                    {"gflops_per_s", m.gflops()},
                                    {"peak_gflops_per_s", nullptr}};
    if (!m.timing.replay_ms.empty()) entry["replay_ms"] = to_json(summarize(m.timing.replay_ms));
    if (m.peak_gflops) entry["peak_gflops_per_s"] = *m.peak_gflops;
    results.push_back(std::move(entry));
  }
  return {{"benchmark", "latency"},      {"fovea_version", version()},
          {"model", flags.engine.model}, {"device", run.device},
          {"warmups", flags.warmups},    {"repetitions", flags.repetitions},
          {"results", results}};
}

int run_latency(const LatencyFlags& flags, Console& console) {
  check_output_paths({flags.output_json, flags.plot}, files_read(flags.engine.model));
  const std::vector<std::int64_t> threads =
      flags.threads.empty() ? std::vector<std::int64_t>{0} : flags.threads;
  const LatencyRun run = measure(flags, threads, console);
  if (!flags.output_json.empty()) {
    write_text_file(flags.output_json, json_text(json_of(flags, run)));
  }
  if (!flags.plot.empty()) write_text_file(flags.plot, to_svg(chart_of(run)));

  std::cout << timing_table(run) << "\n";
  if (threads.size() > 1) {
    std::cout << "speed-up over " << threads_text(threads.front()) << "\n"
              << scaling_table(run, threads) << "\n";
  }
  std::cout << "times in milliseconds, " << flags.repetitions << " repetitions; GFLOP/s of the "
            << "faster way\ndevice  " << run.device << "\n";
  for (std::size_t i = 0; i < run.measurements.size(); i += cases_of(flags).size()) {
    const Measurement& m = run.measurements[i];
    if (!m.peak_gflops) continue;
    std::cout << "peak    " << fixed(*m.peak_gflops, 1) << " GFLOP/s of multiply-adds on "
              << threads_text(m.threads) << ", measured in this run\n";
  }
  return kExitOk;
}

void add_flags(CLI::App& verb, LatencyFlags& flags) {
  add_model(verb, flags.engine);
  add_positive_list(verb, "--threads", flags.threads,
                    "CPU threads; a list shows how the tower scales (default: all)")
      ->group("Benchmark");
  CLI::Option* patches =
      add_positive_list(verb, "--patches", flags.patches, "Sizes of a picture, in patches")
          ->group("Benchmark");
  CLI::Option* count =
      add_positive(verb, "--count", flags.count, "Equal pictures per run")->group("Benchmark");
  verb.add_option_function<std::string>(
          "--cases", [&flags](const std::string& text) { flags.cases = parse_cases(text); },
          "Both at once, for runs of different numbers of pictures")
      ->type_name("COUNTxPATCHES,...")
      ->excludes(patches)
      ->excludes(count)
      ->group("Benchmark");
  add_positive(verb, "--warmups", flags.warmups, "Runs of each kind that do not count")
      ->group("Benchmark");
  add_positive(verb, "--repetitions", flags.repetitions, "Runs of each kind that count")
      ->group("Benchmark");
  add_output_file(verb, "--output-json", flags.output_json, "Write all figures as JSON");
  add_output_file(verb, "--plot", flags.plot, "Write a chart as SVG");
  add_engine_flags(verb, flags.engine);
}

constexpr VerbText kText{
    .name = "latency",
    .summary = "Time the tower on random pixels",
    .footer = R"(Eager runs and replays take turns, so that drift of the machine hits both alike.

Examples:
  fovea bench latency ./Qwen3-VL --load-format dummy --patches 64,256,1024 --threads 1,2,4
  fovea bench latency ./Qwen3-VL --load-format dummy --cases 1x64,1x4096,20x440)",
};

}  // namespace

void add_bench_latency(CLI::App& bench, Program& program) {
  add_verb(bench, program, kText, add_flags, run_latency);
}

}  // namespace fovea::cli
