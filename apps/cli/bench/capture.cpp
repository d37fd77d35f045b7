// fovea bench capture: what every graph takes at the start, and who is served meanwhile.
#include <algorithm>
#include <array>
#include <chrono>
#include <future>
#include <iostream>

#include "bench/bench.h"
#include "bench/mm_processor/workload.h"
#include "core/stopwatch.h"
#include "errors.h"
#include "flags/cli11.h"
#include "flags/flags.h"
#include "flags/sizes.h"
#include "fovea/engine.h"
#include "fovea/version.h"
#include "inputs.h"
#include "output_file.h"
#include "program.h"
#include "report/report_json.h"
#include "report/table.h"
#include "report/text.h"

namespace fovea::cli {
namespace {

struct CaptureFlags {
  EngineFlags engine;
  ItemSize size{.width_px = 640, .height_px = 480};
  std::string output_json;
};

/// Milliseconds since the call that loads the engine.
struct CaptureRun {
  std::string device;
  double loaded_ms = 0;
  double first_answer_ms = 0;
  double captured_ms = 0;
  std::int64_t answers_before = 0;  ///< that were there before the last graph was
  double slowest_answer_ms = 0;     ///< the longest that one of them took
  double answer_ms = 0;             ///< what one takes with all graphs there
  Stats stats;
};

/// Asks for an image again and again until every graph is there.
CaptureRun measure(const CaptureFlags& flags, Console& console) {
  const EngineOptions options = engine_options(flags.engine, console);
  check_limits(flags.engine, options);
  if (!options.graphs.cudagraph_mm_encoder) {
    throw UsageError("bench capture needs graphs, but they are turned off");
  }
  check_sizes(flags.engine.model, std::array{flags.size}, options);
  const std::vector<MediaItem> items =
      make_items({.random = {{.size = flags.size}}, .files = {}}, ImageEncoding::kRaw);
  CaptureRun run;
  const Stopwatch since_start;
  Engine engine = Engine::load(flags.engine.model, options);
  run.loaded_ms = since_start.elapsed_ms();
  std::future<double> captured_ms = std::async(std::launch::async, [&] {
    engine.warm_up();
    return since_start.elapsed_ms();
  });
  const auto answer_ms = [&] {
    const Stopwatch watch;
    (void)engine.encode(items, {.dtype = RowDType::kBFloat16});
    return watch.elapsed_ms();
  };
  std::vector<std::pair<double, double>> answers;  // when each was there, how long it took
  do {
    const double took_ms = answer_ms();
    answers.emplace_back(since_start.elapsed_ms(), took_ms);
  } while (captured_ms.wait_for(std::chrono::seconds(0)) != std::future_status::ready);
  run.captured_ms = captured_ms.get();
  run.first_answer_ms = answers.front().first;
  for (const auto& [when_ms, took_ms] : answers) {
    if (when_ms > run.captured_ms) continue;
    ++run.answers_before;
    run.slowest_answer_ms = std::max(run.slowest_answer_ms, took_ms);
  }
  run.answer_ms = answer_ms();
  run.device = engine.device();
  run.stats = engine.stats();
  return run;
}

/// Who was served before the last graph was there.
std::string answers_text(const CaptureRun& run) {
  if (run.answers_before == 0) return "no answer before";
  return counted(run.answers_before, "answer") + " before, the slowest in " +
         fixed(run.slowest_answer_ms, 1) + " ms";
}

/// Says which times of the table this run did not measure.
std::string stored_text(const Stats& stats) {
  const auto stored = std::ranges::count_if(stats.graphs, &GraphReport::stored_times);
  if (stored == 0) return "";
  return "times     of " + counted(stored, "graph") + " were measured by an earlier run\n";
}

std::string ms_or_dash(double ms) { return ms > 0 ? fixed(ms, 3) : "-"; }

std::string graph_table(const Stats& stats) {
  Table table({{"path", Table::Align::kLeft},
               {"budget"},
               {"capture ms"},
               {"own memory"},
               {"of the shared"},
               {"replay ms"},
               {"eager ms"}});
  double total_ms = 0;
  for (const GraphReport& graph : stats.graphs) {
    total_ms += graph.capture_ms;
    table.add_row({graph.path, std::to_string(graph.budget), fixed(graph.capture_ms, 1),
                   bytes_text(static_cast<std::size_t>(graph.recording_bytes)),
                   bytes_text(static_cast<std::size_t>(graph.shared_bytes)),
                   ms_or_dash(graph.replay_ms), ms_or_dash(graph.eager_ms)});
  }
  table.add_rule();
  table.add_row({"all", std::to_string(stats.num_budgets), fixed(total_ms, 1),
                 bytes_text(static_cast<std::size_t>(stats.graph_bytes))});
  return table.text();
}

JsonObject json_of(const CaptureFlags& flags, const CaptureRun& run) {
  return {{"benchmark", "capture"},
          {"fovea_version", version()},
          {"model", flags.engine.model},
          {"device", run.device},
          {"size", to_text(flags.size)},
          {"loaded_ms", run.loaded_ms},
          {"first_answer_ms", run.first_answer_ms},
          {"captured_ms", run.captured_ms},
          {"answers_before", run.answers_before},
          {"slowest_answer_ms", run.slowest_answer_ms},
          {"answer_ms", run.answer_ms},
          {"stats", to_json(run.stats)}};
}

int run_capture(const CaptureFlags& flags, Console& console) {
  check_output_paths({flags.output_json}, files_read(flags.engine.model));
  const CaptureRun run = measure(flags, console);
  if (!flags.output_json.empty()) {
    write_text_file(flags.output_json, json_text(json_of(flags, run)));
  }
  std::cout << graph_table(run.stats) << "\n"
            << "loaded    after " << fixed(run.loaded_ms, 0) << " ms\n"
            << "first     answer after " << fixed(run.first_answer_ms, 0) << " ms, an image of "
            << to_text(flags.size) << "\n"
            << "captured  after " << fixed(run.captured_ms, 0) << " ms, " << answers_text(run)
            << ", afterwards " << fixed(run.answer_ms, 1) << " ms\n"
            << "memory    of all graphs; they share what the largest of them needs\n"
            << stored_text(run.stats) << "device    " << run.device << "\n";
  return kExitOk;
}

void add_flags(CLI::App& verb, CaptureFlags& flags) {
  add_model(verb, flags.engine);
  verb.add_option_function<std::string>(
          "--size", [&flags](const std::string& text) { flags.size = parse_size(text); },
          "Size of the image that is encoded repeatedly during the capture")
      ->type_name("WxH")
      ->default_str(to_text(flags.size))
      ->group(kBenchmarkGroup);
  add_output_file(verb, "--output-json", flags.output_json, "Write all figures as JSON");
  add_threads(verb, flags.engine);
  add_engine_flags(verb, flags.engine);
}

constexpr VerbText kCaptureText{
    .name = "capture",
    .summary = "Time the capture of every graph, and answers in the meantime",
    .footer = R"(Times below the table count from the start of loading.

Example:
  fovea bench capture ./Qwen3-VL --device cuda --output-json capture.json)",
};

}  // namespace

void add_bench_capture(CLI::App& bench, Program& program) {
  add_verb(bench, program, kCaptureText, add_flags, run_capture);
}

}  // namespace fovea::cli
