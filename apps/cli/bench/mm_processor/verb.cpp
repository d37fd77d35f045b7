// fovea bench mm-processor: requests with images and videos, stage by stage. Workloads, flags and
// figures are those of the reference's benchmark of the same name, less its language model.
// Source: docs/reference/encoder_graphs.md, "Benchmark requests" and "Benchmark figures".
#include <algorithm>
#include <ctime>
#include <iostream>
#include <iterator>
#include <limits>

#include "bench/bench.h"
#include "bench/mm_processor/hub_dataset.h"
#include "bench/mm_processor/mm_flags.h"
#include "bench/mm_processor/report.h"
#include "bench/mm_processor/runner.h"
#include "bench/mm_processor/workload.h"
#include "errors.h"
#include "flags/flags.h"
#include "flags/sizes.h"
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
      const SamplingOptions images = chat_images();
      sampling.buckets = images.buckets;
      sampling.jitter_percent = images.jitter_percent;
    }
    const ItemSampler sampler(std::move(sampling));
    return {.warmups = random_requests(sampler, num_warmups, flags.seed() + 1),
            .requests = random_requests(sampler, flags.num_prompts, flags.seed())};
  }
  if (flags.from_hub()) {
    const HubRequests wanted{flags.num_prompts, num_warmups, flags.seed()};
    return {.warmups = hub_requests(flags.hub, wanted, wanted.seed + 1, num_warmups),
            .requests = hub_requests(flags.hub, wanted, wanted.seed, flags.num_prompts)};
  }
  const std::vector<MmRequest> pool = flags.dataset_name == "dir"
                                          ? directory_requests(flags.dataset_path)
                                          : jsonl_requests(flags.dataset_path);
  return {.warmups = draw_requests(pool, num_warmups, flags.seed() + 1),
          .requests = draw_requests(pool, flags.num_prompts, flags.seed())};
}

std::int64_t count_of(const MmRequest& request, Modality modality) {
  return std::ranges::count(request.files, modality, &MediaItem::modality) +
         std::ranges::count(request.random, modality,
                            [](const RandomItem& item) { return item.size.modality; });
}

/// @throws UsageError naming the flag for a request of more than `most` items of a modality.
void check_prompts(Modality modality, const std::optional<std::int64_t>& most,
                   std::span<const MmRequest> requests) {
  if (!most) return;
  const std::string name = to_string(modality);
  for (const MmRequest& request : requests) {
    const std::int64_t count = count_of(request, modality);
    if (count <= *most) continue;
    throw UsageError("--max-" + name + "s-per-prompt: expected at most " + counted(*most, name) +
                     " in a request, the workload has one with " + std::to_string(count));
  }
}

/// Returns the files that no output may replace.
std::vector<std::string> files_of_run(const MmFlags& flags, const Workload& workload) {
  const InputArgument dataset{.text = flags.dataset_path};
  std::vector<std::string> files = files_read(flags.engine.model, {&dataset, 1});
  if (flags.from_hub()) {
    files.push_back(converted_file(flags.hub, flags.seed()));
    files.push_back(converted_file(flags.hub, flags.seed() + 1));
  }
  for (const std::vector<MmRequest>* requests : {&workload.warmups, &workload.requests}) {
    for (const MmRequest& request : *requests) {
      for (const MediaItem& item : request.files) {
        std::ranges::copy(item.paths(), std::back_inserter(files));
      }
    }
  }
  return files;
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

/// How the tower runs: one way, or both if they are to be compared.
std::vector<TowerMode> modes_of(const MmFlags& flags, const EngineOptions& options) {
  const bool graphs = options.graphs.cudagraph_mm_encoder;
  if (!flags.compare) return {graphs ? TowerMode::kGraphs : TowerMode::kEager};
  if (!graphs) throw UsageError("--compare needs graphs, but they are turned off");
  return {TowerMode::kEager, TowerMode::kGraphs};
}

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

  const HostLoad load(flags.host_load);
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

/// Figures of the last run are at the top, as the reference has them; with two, those of the first
/// stand beside them under its name.
JsonObject json_of(const MmFlags& flags, const std::vector<WorkloadRun>& runs,
                   const Engine& engine) {
  JsonObject json = figures_json(runs.back(), flags.percents);
  if (runs.size() > 1) {
    json.set(to_string(runs.front().mode), figures_json(runs.front(), flags.percents));
  }
  json.set("benchmark", "mm-processor");
  json.set("fovea_version", version());
  json.set("device", engine.device());
  json.set("stats", to_json(engine.stats()));
  json.set("config", config_json(flags));
  json.set("timestamp", timestamp());
  return json;
}

void print_report(const MmFlags& flags, const std::vector<WorkloadRun>& runs,
                  const Engine& engine) {
  const Stats stats = engine.stats();
  std::cout << stage_table(runs, flags.percents) << "\n" << rates_table(runs) << "\n";
  if (runs.size() > 1) {
    std::cout << "ratio   time of " << to_string(runs[0].mode) << " relative to "
              << to_string(runs[1].mode) << "\n";
  }
  std::cout << "stages  per request; items prepared in parallel overlap, so their sum may exceed "
               "end to end\n"
            << "graphs  " << stats.num_budgets << " captured in " << fixed(stats.capture_seconds, 2)
            << " s, " << bytes_text(static_cast<std::size_t>(stats.graph_bytes)) << "\n"
            << "device  " << engine.device() << "\n"
            << host_load_line(flags.host_load);
}

int run_mm_processor(const MmFlags& flags, Console& console) {
  check_mm_flags(flags);
  for (const std::string& flag : flags.without_effect) {
    console.warn(flag + " has no effect on this workload");
  }
  EngineOptions options = engine_options(flags.engine, console);
  check_limits(flags.engine, options);
  const std::vector<TowerMode> modes = modes_of(flags, options);
  // Uncompressed files of images that the buckets ask for may be larger than files from outside.
  if (flags.random()) {
    options.media.limits.max_image_bytes = std::numeric_limits<std::size_t>::max();
    check_sizes(flags.engine.model, bucket_sizes(flags.sampling), options);
  }

  const Workload workload = make_workload(flags);
  for (const std::vector<MmRequest>* requests : {&workload.warmups, &workload.requests}) {
    check_prompts(Modality::kImage, flags.max_images, *requests);
    check_prompts(Modality::kVideo, flags.max_videos, *requests);
  }
  check_output_paths({flags.output_json}, files_of_run(flags, workload));
  Engine engine = Engine::load(flags.engine.model, options);
  const std::vector<WorkloadRun> runs = measure(flags, engine, workload, modes, console);
  report_failures(runs, console);
  if (!flags.output_json.empty()) {
    write_text_file(flags.output_json, json_text(json_of(flags, runs, engine)));
  }
  print_report(flags, runs, engine);
  return kExitOk;
}

constexpr VerbText kText{
    .name = "mm-processor",
    .summary = "Time requests with images and videos, stage by stage",
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
  add_verb(bench, program, kText, add_mm_flags, run_mm_processor);
}

}  // namespace fovea::cli
