// fovea bench cache: what compact storage of rows is worth to a scheduler. Counts, reads no model.
#include <iostream>

#include "bench/bench.h"
#include "bench/cache/replay.h"
#include "bench/cache/trace.h"
#include "errors.h"
#include "flags/cli11.h"
#include "flags/parse.h"
#include "fovea/version.h"
#include "output_file.h"
#include "program.h"
#include "report/report_json.h"
#include "report/text.h"

namespace fovea::cli {
namespace {

constexpr std::int64_t kMaxSlots = 100'000'000;
constexpr std::int64_t kMaxRowBytes = 1 << 24;

struct CacheFlags {
  std::string trace;  ///< a file; empty: of chance
  TraceOptions random;
  std::string shapes = "1196,8x322,64x64";
  std::optional<std::int64_t> seed;
  std::vector<std::int64_t> cache_sizes{16'384, 32'768, 65'536, 131'072};
  ReplaySettings engine;
  std::int64_t row_bytes = 16'384;
  std::string output_json;
};

Trace make_trace(const CacheFlags& flags) {
  if (!flags.trace.empty()) return read_trace(flags.trace);
  TraceOptions options = flags.random;
  options.shapes = parse_shapes(flags.shapes, "--shapes");
  options.seed = static_cast<std::uint64_t>(flags.seed.value_or(0));
  return random_trace(options);
}

std::vector<CacheRun> run_all(const CacheFlags& flags, const Trace& trace) {
  std::vector<CacheRun> runs;
  for (const std::int64_t size : flags.cache_sizes) {
    for (const Storage storage : {Storage::kCompact, Storage::kScattered}) {
      ReplaySettings settings = flags.engine;
      settings.storage = storage;
      settings.cache_size = size;
      runs.push_back({storage, size, replay(trace, settings)});
    }
  }
  return runs;
}

int run_cache(const CacheFlags& flags, Console& console) {
  (void)console;
  std::vector<std::string> inputs;
  if (!flags.trace.empty()) inputs.push_back(flags.trace);
  check_output_paths({flags.output_json}, inputs);
  const Trace trace = make_trace(flags);
  const std::vector<CacheRun> runs = run_all(flags, trace);
  if (!flags.output_json.empty()) {
    write_text_file(flags.output_json,
                    json_text(JsonObject{{"benchmark", "cache"},
                                         {"fovea_version", version()},
                                         {"requests", trace.size()},
                                         {"chunk_size", flags.engine.chunk_size},
                                         {"row_bytes", flags.row_bytes},
                                         {"results", cache_json(runs, flags.row_bytes)}}));
  }
  std::cout << cache_table(runs, flags.row_bytes) << "\n"
            << counted(std::ssize(trace), "request") << ", steps of "
            << counted(flags.engine.chunk_size, "token") << ", rows of "
            << bytes_text(static_cast<std::size_t>(flags.row_bytes)) << "\n";
  return kExitOk;
}

/// A flag that takes a number, of which `is_right` says whether it is one.
void add_number(CLI::App& verb, const std::string& name, double& value, const std::string& expected,
                bool (*is_right)(double), const std::string& description) {
  verb.add_option_function<std::string>(
          name,
          [&value, name, expected, is_right](const std::string& text) {
            value = parse_number(text, name);
            if (!is_right(value)) {
              throw UsageError(name + ": expected " + expected + ", got \"" + one_line(text) +
                               "\"");
            }
          },
          description)
      ->type_name("NUMBER")
      ->default_str(fixed(value, 1))
      ->group(kBenchmarkGroup);
}

void add_trace_flags(CLI::App& verb, CacheFlags& flags) {
  verb.add_option("--trace", flags.trace,
                  "Requests, one per line as JSON (docs/cli.md); without it they are random")
      ->type_name("FILE")
      ->group(kBenchmarkGroup);
  add_positive(verb, "--num-requests", flags.random.num_requests, "Random requests", kMaxRuns)
      ->group(kBenchmarkGroup);
  add_positive(verb, "--max-items", flags.random.max_items, "Most items of a random request", 1000)
      ->group(kBenchmarkGroup);
  verb.add_option("--shapes", flags.shapes,
                  "Rows of a random item: N of an image, PxN of a video with P temporal patches")
      ->type_name("N,PxN,...")
      ->capture_default_str()
      ->group(kBenchmarkGroup);
  add_number(
      verb, "--repeat-rate", flags.random.repeat_rate, "a number from 0 to 1",
      [](double value) { return value >= 0 && value <= 1; },
      "Chance that a random item came before");
  add_number(
      verb, "--arrivals", flags.random.arrivals, "a number > 0",
      [](double value) { return value > 0 && value <= 1e6; },
      "Random requests per step, on average");
  add_positive(verb, "--text-tokens", flags.random.text,
               "Tokens of text around the items of a random request", kMaxRuns)
      ->group(kBenchmarkGroup);
  add_count(verb, "--seed", flags.seed, "Seed of random requests (default: 0)")
      ->group(kBenchmarkGroup);
}

void add_flags(CLI::App& verb, CacheFlags& flags) {
  add_trace_flags(verb, flags);
  add_positive_list(verb, "--encoder-cache-size", flags.cache_sizes,
                    "Sizes of the cache to compare, in slots for a row", kMaxSlots)
      ->group(kBenchmarkGroup);
  add_positive(verb, "--chunk-size", flags.engine.chunk_size, "Tokens of a step", kMaxSlots)
      ->group(kBenchmarkGroup);
  add_positive(verb, "--max-num-seqs", flags.engine.max_running, "Most requests at a time",
               kMaxRuns)
      ->group(kBenchmarkGroup);
  add_number(
      verb, "--patch-seconds", flags.engine.seconds, "a number >= 0",
      [](double value) { return value >= 0 && value <= 1e6; },
      "Seconds between temporal patches: their timestamps are text");
  add_positive(verb, "--row-bytes", flags.row_bytes,
               "Bytes of a row: 16384 is a hidden size of 2048 and three deepstack levels in "
               "bfloat16",
               kMaxRowBytes)
      ->group(kBenchmarkGroup);
  add_output_file(verb, "--output-json", flags.output_json, "Write all figures as JSON");
}

constexpr VerbText kText{
    .name = "cache",
    .summary = "Replay requests against an encoder cache, compact and scattered",
    .footer =
        R"(Compact storage has a slot for every row, scattered storage one for every position of the
placeholder, timestamps and markers of videos included. Nothing is encoded and no model is read.

Examples:
  fovea bench cache --shapes 384x4 --repeat-rate 0.6 --output-json hits.json
  fovea bench cache --trace requests.jsonl --encoder-cache-size 16384,65536)",
};

}  // namespace

void add_bench_cache(CLI::App& bench, Program& program) {
  add_verb(bench, program, kText, add_flags, run_cache);
}

}  // namespace fovea::cli
