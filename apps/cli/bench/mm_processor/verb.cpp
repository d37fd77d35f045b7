// fovea bench mm-processor: requests with pictures and videos, stage by stage. Workloads, flags and
// figures are those of the reference's benchmark of the same name, less its language model.
// Source: encoder graph specification, section 11.
#include <ctime>
#include <iostream>
#include <limits>

#include "bench/mm_processor/report.h"
#include "bench/mm_processor/runner.h"
#include "bench/mm_processor/workload.h"
#include "cli11.h"
#include "errors.h"
#include "flags.h"
#include "fovea/engine.h"
#include "fovea/version.h"
#include "inputs.h"
#include "model_limits.h"
#include "output_file.h"
#include "parse.h"
#include "progress.h"
#include "report/report_json.h"
#include "report/text.h"
#include "sizes.h"
#include "verb.h"

namespace fovea::cli {
namespace {

constexpr const char* kWorkloadGroup = "Workload";
constexpr const char* kBenchmarkGroup = "Benchmark";
constexpr const char* kIgnoredGroup = "Ignored, since no text reaches the encoder";

struct MmFlags {
  EngineFlags engine;
  std::string dataset_name = "random-mm";
  std::string dataset_path;
  std::int64_t num_prompts = 10;
  std::optional<std::int64_t> num_warmups;
  SamplingOptions sampling;
  std::string encoded = "png";
  std::string dtype = "float32";
  Arrivals arrivals;
  bool compare = false;
  std::vector<double> percents{99};
  std::string output_json;
  std::string plot;
  bool disable_tqdm = false;
  std::vector<std::string> without_effect;  ///< flags that were given

  [[nodiscard]] std::uint64_t seed() const {
    return static_cast<std::uint64_t>(engine.seed.value_or(0));
  }
  [[nodiscard]] bool random() const {
    return dataset_name == "random-mm" || dataset_name == "vision-arena-like";
  }
  /// Whether requests follow one another, each one timed on its own.
  [[nodiscard]] bool in_turn() const {
    return arrivals.per_second == 0 && arrivals.max_concurrency == 1;
  }
  [[nodiscard]] PictureEncoding encoding() const {
    return encoded == "png" ? PictureEncoding::kPng : PictureEncoding::kRaw;
  }
};

struct Workload {
  std::vector<MmRequest> warmups;
  std::vector<MmRequest> requests;
};

// --- the workload ---

/// Requests that count come from the seed, those before them from the next one.
Workload make_workload(const MmFlags& flags) {
  const std::int64_t num_warmups = flags.num_warmups.value_or(1);
  if (flags.random()) {
    SamplingOptions sampling = flags.sampling;
    if (flags.dataset_name == "vision-arena-like") {
      const SamplingOptions pictures = chat_pictures();
      sampling.buckets = pictures.buckets;
      sampling.jitter_percent = pictures.jitter_percent;
    }
    const ItemSampler sampler(std::move(sampling));
    return {.warmups = random_requests(sampler, num_warmups, flags.seed() + 1),
            .requests = random_requests(sampler, flags.num_prompts, flags.seed())};
  }
  const std::vector<MmRequest> pool = flags.dataset_name == "dir"
                                          ? directory_requests(flags.dataset_path)
                                          : jsonl_requests(flags.dataset_path);
  return {.warmups = draw_requests(pool, num_warmups, flags.seed() + 1),
          .requests = draw_requests(pool, flags.num_prompts, flags.seed())};
}

/// What no output may replace.
std::vector<std::string> files_of_run(const MmFlags& flags, const Workload& workload) {
  const InputArgument dataset{.text = flags.dataset_path};
  std::vector<std::string> files = files_read(flags.engine.model, {&dataset, 1});
  for (const std::vector<MmRequest>* requests : {&workload.warmups, &workload.requests}) {
    for (const MmRequest& request : *requests) {
      for (const MediaItem& item : request.files) {
        files.insert(files.end(), item.paths.begin(), item.paths.end());
      }
    }
  }
  return files;
}

void check_flags(const MmFlags& flags) {
  if (flags.random() != flags.dataset_path.empty()) {
    throw UsageError(flags.random()
                         ? "--dataset-path: only dir and jsonl read files, the data set is " +
                               flags.dataset_name
                         : "--dataset-path is required by --dataset-name " + flags.dataset_name);
  }
  if (flags.compare && !flags.in_turn()) {
    throw UsageError(
        "--compare sends one request at a time; leave out --request-rate and "
        "--max-concurrency");
  }
}

/// The sizes that random requests draw from.
std::vector<ItemSize> bucket_sizes(const SamplingOptions& sampling) {
  std::vector<ItemSize> sizes;
  for (const SizeBucket& bucket : sampling.buckets) {
    if (bucket.probability > 0) sizes.push_back(bucket.size);
  }
  return sizes;
}

// --- running ---

std::vector<WorkloadRun> run_requests(const MmFlags& flags, const RunContext& ctx,
                                      std::span<const TowerMode> modes) {
  if (flags.in_turn()) return run_in_turn(ctx, modes);
  return {run_arrivals(ctx, modes.front(), flags.arrivals)};
}

std::vector<WorkloadRun> measure(const MmFlags& flags, Engine& engine, const Workload& workload,
                                 std::span<const TowerMode> modes, Console& console) {
  const auto times = static_cast<std::int64_t>(modes.size());
  const bool compared = modes.size() > 1;
  Progress warming(console, "warming up",
                   (std::ssize(workload.warmups) + (compared ? 1 : 0)) * times);
  engine.warm_up();
  RunContext ctx{.engine = engine,
                 .requests = workload.warmups,
                 .encoding = flags.encoding(),
                 .dtype = row_dtype(flags.dtype),
                 .advance = [&] { warming.advance(); }};
  (void)run_in_turn(ctx, modes);
  if (compared) {  // neither mode is charged for memory that grows under the largest request
    ctx.requests = {&largest_request(workload.requests), 1};
    (void)run_in_turn(ctx, modes);
  }

  Progress measuring(console, "measuring", std::ssize(workload.requests) * times);
  ctx.requests = workload.requests;
  ctx.advance = [&] { measuring.advance(); };
  return run_requests(flags, ctx, modes);
}

/// Failed requests are reported; having no other is a failure.
void report_failures(const std::vector<WorkloadRun>& runs, Console& console) {
  for (const WorkloadRun& run : runs) {
    if (run.failures.empty()) continue;
    const std::string count = counted(std::ssize(run.failures), "request");
    if (run.completed.empty()) {
      throw Error(ErrorCode::kInvalidArgument,
                  "all " + count + " failed; the first: " + run.failures.front());
    }
    console.warn(count + " failed; the first: " + run.failures.front());
  }
}

// --- output ---

std::string timestamp() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  std::array<char, sizeof("2000-01-01T00:00:00Z")> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text.data();
}

nlohmann::ordered_json config_json(const MmFlags& flags) {
  nlohmann::ordered_json json = {{"model", flags.engine.model},
                                 {"num_prompts", flags.num_prompts},
                                 {"num_warmups", flags.num_warmups.value_or(1)},
                                 {"seed", flags.seed()},
                                 {"dataset_name", flags.dataset_name},
                                 {"dtype", flags.dtype},
                                 {"attention", flags.engine.attention},
                                 {"max_concurrency", flags.arrivals.max_concurrency},
                                 {"request_rate", nullptr}};
  if (flags.arrivals.per_second > 0) json["request_rate"] = flags.arrivals.per_second;
  if (flags.random()) {
    json["items_per_request"] = flags.sampling.items_per_request;
    json["items_range_ratio"] = flags.sampling.range_ratio;
    json["encoded"] = flags.encoded;
  } else {
    json["dataset_path"] = flags.dataset_path;
  }
  return json;
}

/// Figures of the last run are at the top, as the reference has them; with two, those of the first
/// stand beside them under its name.
nlohmann::ordered_json json_of(const MmFlags& flags, const std::vector<WorkloadRun>& runs,
                               const Engine& engine) {
  nlohmann::ordered_json json = figures_json(runs.back(), flags.percents);
  if (runs.size() > 1) {
    json[to_string(runs.front().mode)] = figures_json(runs.front(), flags.percents);
  }
  json["benchmark"] = "mm-processor";
  json["fovea_version"] = version();
  json["device"] = engine.device();
  json["stats"] = to_json(engine.stats());
  json["config"] = config_json(flags);
  json["timestamp"] = timestamp();
  return json;
}

void print_report(const MmFlags& flags, const std::vector<WorkloadRun>& runs,
                  const Engine& engine) {
  const Stats stats = engine.stats();
  std::cout << stage_table(runs, flags.percents) << "\n" << rates_table(runs) << "\n";
  if (runs.size() > 1) {
    std::cout << "ratio   what " << to_string(runs[0].mode) << " takes relative to "
              << to_string(runs[1].mode) << "\n";
  }
  std::cout << "stages  per request; items prepared side by side overlap, so their sum may exceed "
               "end to end\n"
            << "graphs  " << stats.num_budgets << " captured in " << fixed(stats.capture_seconds, 2)
            << " s, " << bytes_text(static_cast<std::size_t>(stats.graph_bytes)) << "\n"
            << "device  " << engine.device() << "\n";
}

int run_mm_processor(const MmFlags& flags, Console& console) {
  check_flags(flags);
  if (flags.disable_tqdm) console.hide_status();
  for (const std::string& flag : flags.without_effect) {
    console.warn(flag + " has no effect on this workload");
  }
  EngineOptions options = engine_options(flags.engine, console);
  check_limits(flags.engine.model, options);
  const bool graphs = options.graphs.cudagraph_mm_encoder;
  if (flags.compare && !graphs) throw UsageError("--compare needs graphs, but they are turned off");
  std::vector<TowerMode> modes{graphs ? TowerMode::kGraphs : TowerMode::kEager};
  if (flags.compare) modes = {TowerMode::kEager, TowerMode::kGraphs};
  // Uncompressed files of pictures that the buckets ask for may be larger than files from outside.
  if (flags.random()) {
    options.media.limits.max_image_bytes = std::numeric_limits<std::size_t>::max();
    check_sizes(flags.engine.model, bucket_sizes(flags.sampling), options);
  }

  const Workload workload = make_workload(flags);
  check_output_paths({flags.output_json, flags.plot}, files_of_run(flags, workload));
  Engine engine = Engine::load(flags.engine.model, options);
  const std::vector<WorkloadRun> runs = measure(flags, engine, workload, modes, console);
  report_failures(runs, console);
  if (!flags.output_json.empty()) {
    write_text_file(flags.output_json, json_text(json_of(flags, runs, engine)));
  }
  if (!flags.plot.empty()) write_text_file(flags.plot, to_svg(stage_chart(runs, flags.percents)));
  print_report(flags, runs, engine);
  return kExitOk;
}

// --- flags ---

CLI::Option* add_text(CLI::App& verb, const std::string& name, const std::string& type,
                      const std::string& description,
                      std::function<void(const std::string&)> read) {
  return verb.add_option_function<std::string>(name, std::move(read), description)
      ->type_name(type)
      ->group(kWorkloadGroup);
}

void add_workload_flags(CLI::App& verb, MmFlags& flags) {
  add_choice(verb, "--dataset-name", flags.dataset_name,
             {"random-mm", "vision-arena-like", "dir", "jsonl"},
             "Random pictures, random pictures of mixed sizes, a directory, or a file of requests")
      ->group(kWorkloadGroup);
  verb.add_option("--dataset-path", flags.dataset_path,
                  "Directory of pictures for dir, file of requests for jsonl")
      ->type_name("PATH")
      ->group(kWorkloadGroup);
  add_positive(verb, "--num-prompts", flags.num_prompts, "Requests that count")
      ->group(kWorkloadGroup);
  add_count(verb, "--num-warmups", flags.num_warmups,
            "Requests before them, of the next seed, that do not count (default: 1)")
      ->group(kWorkloadGroup);
  add_positive(verb, "--random-mm-base-items-per-request", flags.sampling.items_per_request,
               "Pictures and videos of a random request")
      ->group(kWorkloadGroup);
  add_text(verb, "--random-mm-num-mm-items-range-ratio", "R",
           "Let that number vary between (1 - R) and (1 + R) times itself",
           [&flags](const std::string& text) {
             flags.sampling.range_ratio =
                 parse_number(text, "--random-mm-num-mm-items-range-ratio");
           })
      ->default_str("0");
  add_text(verb, "--random-mm-limit-mm-per-prompt", "JSON", "Most items of each modality",
           [&flags](const std::string& text) { flags.sampling.limits = parse_item_limits(text); })
      ->default_str(R"({"image": 255, "video": 1})");
  add_text(
      verb, "--random-mm-bucket-config", "DICT",
      "Probability of each (height, width, frames); frames above 1 are videos",
      [&flags](const std::string& text) { flags.sampling.buckets = parse_bucket_config(text); })
      ->default_str("{(256, 256, 1): 0.5, (720, 1280, 1): 0.5}");
  add_choice(verb, "--encoded", flags.encoded, {"png", "raw"},
             "Random pictures come as uncompressed PNG files, or as decoded pixels")
      ->group(kWorkloadGroup);
}

void add_benchmark_flags(CLI::App& verb, MmFlags& flags) {
  verb.add_flag("--compare", flags.compare,
                "Run every request eagerly and with graphs, in turn, and show both")
      ->group(kBenchmarkGroup);
  add_positive(verb, "--max-concurrency", flags.arrivals.max_concurrency,
               "Most requests that are served at once")
      ->group(kBenchmarkGroup);
  add_text(verb, "--request-rate", "R",
           "Requests arrive at random, R per second (default: the next one follows the answer)",
           [&flags](const std::string& text) {
             flags.arrivals.per_second = parse_number(text, "--request-rate");
             if (flags.arrivals.per_second > 0) return;
             throw UsageError("--request-rate: expected a number above 0, got \"" + text + "\"");
           })
      ->group(kBenchmarkGroup);
  add_row_dtype(verb, flags.dtype, "Element type of the rows that are handed over")
      ->group(kBenchmarkGroup);
  add_text(verb, "--metric-percentiles", "P,P,...", "Percentiles to show",
           [&flags](const std::string& text) {
             flags.percents = parse_percents(text, "--metric-percentiles");
           })
      ->default_str("99")
      ->group(kBenchmarkGroup);
}

void add_output_flags(CLI::App& verb, MmFlags& flags) {
  add_output_file(verb, "--output-json", flags.output_json, "Write all figures as JSON");
  add_output_file(verb, "--plot", flags.plot, "Write the time of each stage as SVG");
  verb.add_flag("--disable-tqdm", flags.disable_tqdm, "Show no progress")->group(kOutputGroup);
}

/// The reference's flags about prompts.
void add_text_flags(CLI::App& verb) {
  for (const char* name : {"--random-input-len", "--random-output-len", "--random-range-ratio",
                           "--random-prefix-len", "--max-model-len"}) {
    verb.add_option(name)->description("Has no effect")->type_name("N")->group(kIgnoredGroup);
  }
}

/// Given flags that do nothing: those about text, and those of another data set.
std::vector<std::string> flags_without_effect(const CLI::App& verb, const MmFlags& flags) {
  std::vector<std::string> names;
  for (const CLI::Option* option : verb.get_options()) {
    if (option->count() == 0) continue;
    const std::string name = option->get_name();
    const bool text = option->get_group() == kIgnoredGroup;
    const bool random_only = name.starts_with("--random-mm-") || name == "--encoded";
    const bool sizes = name == "--random-mm-bucket-config";
    if (text || (random_only && !flags.random()) || (sizes && flags.dataset_name != "random-mm")) {
      names.push_back(name);
    }
  }
  return names;
}

void add_flags(CLI::App& verb, MmFlags& flags) {
  add_model(verb, flags.engine);
  add_workload_flags(verb, flags);
  add_benchmark_flags(verb, flags);
  add_output_flags(verb, flags);
  add_text_flags(verb);
  add_threads(verb, flags.engine);
  add_engine_flags(verb, flags.engine);
  verb.get_option("--seed")->description("Seed of the workload and of dummy weights (default: 0)");
  verb.parse_complete_callback([&verb, &flags] {
    flags.without_effect = flags_without_effect(verb, flags);
    flags.arrivals.seed = flags.seed();
  });
}

constexpr VerbText kText{
    .name = "mm-processor",
    .summary = "Time requests with pictures and videos, stage by stage",
    .footer = R"(Graphs are captured before the first request. Making random pixels is not timed.

Examples:
  fovea bench mm-processor ./Qwen3-VL --compare
  fovea bench mm-processor ./Qwen3-VL --random-mm-base-items-per-request 20 \
    --random-mm-bucket-config '{(336, 336, 1): 1.0}' --num-prompts 1000 --num-warmups 200
  fovea bench mm-processor ./Qwen3-VL --dataset-name dir --dataset-path photos/ \
    --num-prompts 3000 --num-warmups 300 --request-rate 20 --output-json result.json)",
};

}  // namespace

void add_bench_mm_processor(CLI::App& bench, Program& program) {
  add_verb(bench, program, kText, add_flags, run_mm_processor);
}

}  // namespace fovea::cli
