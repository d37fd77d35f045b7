// Flags of `fovea bench mm-processor`.
#include "bench/mm_processor/mm_flags.h"

#include "bench/bench.h"
#include "errors.h"
#include "flags/cli11.h"
#include "flags/parse.h"

namespace fovea::cli {
namespace {

constexpr const char* kWorkloadGroup = "Workload";
constexpr double kMinRate = 1e-3;  // of requests per second
constexpr double kMaxRate = 1e6;

CLI::Option* add_text(CLI::App& verb, const std::string& name, const std::string& type,
                      const std::string& description,
                      const std::function<void(const std::string&)>& read) {
  return verb.add_option_function<std::string>(name, read, description)
      ->type_name(type)
      ->group(kWorkloadGroup);
}

void add_hub_flags(CLI::App& verb, HubDataset& hub) {
  verb.add_option("--hf-split", hub.split, "Split of a data set of the hub")
      ->type_name("NAME")
      ->capture_default_str()
      ->group(kWorkloadGroup);
  verb.add_option("--hf-subset", hub.subset, "Subset of a data set of the hub")
      ->type_name("NAME")
      ->group(kWorkloadGroup);
  verb.add_option("--hf-name", hub.hf_name,
                  "Name on the hub of a data set that --dataset-path gives as a directory")
      ->type_name("NAME")
      ->group(kWorkloadGroup);
}

void add_workload_flags(CLI::App& verb, MmFlags& flags) {
  add_choice(verb, "--dataset-name", flags.dataset_name,
             {"random-mm", "vision-arena-like", "dir", "jsonl", "hf"},
             "Random images, random images of mixed sizes, a directory, a file of requests, or a "
             "data set of the hub that tools/convert_dataset.py has converted")
      ->group(kWorkloadGroup);
  verb.add_option("--dataset-path", flags.dataset_path,
                  "Directory of images for dir, file of requests for jsonl, name on the hub for hf")
      ->type_name("PATH")
      ->group(kWorkloadGroup);
  add_hub_flags(verb, flags.hub);
  add_positive(verb, "--num-prompts", flags.num_prompts, "Measured requests", kMaxRuns)
      ->group(kWorkloadGroup);
  add_count(verb, "--num-warmups", flags.num_warmups,
            "Requests before the measured ones, from the next seed (default: 1)", kMaxRuns)
      ->group(kWorkloadGroup);
  add_positive(verb, "--random-mm-base-items-per-request", flags.sampling.items_per_request,
               "Images and videos per random request", kMaxEqualItems)
      ->group(kWorkloadGroup);
  add_text(verb, "--random-mm-num-mm-items-range-ratio", "R",
           "Vary that number between (1 - R) and (1 + R) times its value",
           [&flags](const std::string& text) {
             flags.sampling.range_ratio =
                 parse_number(text, "--random-mm-num-mm-items-range-ratio");
           })
      ->default_str("0");
  add_text(verb, "--random-mm-limit-mm-per-prompt", "JSON",
           "Most items of each modality per request",
           [&flags](const std::string& text) { flags.sampling.limits = parse_item_limits(text); })
      ->default_str(R"({"image": 255, "video": 1})");
  add_text(
      verb, "--random-mm-bucket-config", "DICT",
      "Probability of each (height, width, frames); frames above 1 are videos",
      [&flags](const std::string& text) { flags.sampling.buckets = parse_bucket_config(text); })
      ->default_str("{(256, 256, 1): 0.5, (720, 1280, 1): 0.5}");
  add_count(verb, "--max-images-per-prompt", flags.max_images,
            "Refuse requests with more images (default: any number)")
      ->group(kWorkloadGroup);
  add_count(verb, "--max-videos-per-prompt", flags.max_videos, "Likewise of videos")
      ->group(kWorkloadGroup);
  add_choice(verb, "--encoded", flags.encoded, {"png", "raw"},
             "Pass random images as uncompressed PNG files, or as decoded pixels")
      ->group(kWorkloadGroup);
}

void add_benchmark_flags(CLI::App& verb, MmFlags& flags) {
  verb.add_flag("--compare", flags.compare,
                "Run every request eagerly and with graphs, in turn, and show both")
      ->group(kBenchmarkGroup);
  add_positive(verb, "--max-concurrency", flags.arrivals.max_concurrency,
               "Most requests in flight at a time", kMaxThreads)
      ->group(kBenchmarkGroup);
  add_text(verb, "--request-rate", "R",
           "Random arrivals, R per second on average (default: each follows the previous answer)",
           [&flags](const std::string& text) {
             flags.arrivals.per_second = parse_number(text, "--request-rate");
             if (flags.arrivals.per_second >= kMinRate && flags.arrivals.per_second <= kMaxRate)
               return;
             throw UsageError("--request-rate: expected a number from 0.001 to 1000000, got \"" +
                              text + "\"");
           })
      ->group(kBenchmarkGroup);
  add_host_load(verb, flags.host_load);
  add_row_dtype(verb, flags.dtype, "Element type of the returned rows")->group(kBenchmarkGroup);
  add_text(verb, "--metric-percentiles", "P,P,...", "Percentiles to show",
           [&flags](const std::string& text) {
             flags.percents = parse_percents(text, "--metric-percentiles");
           })
      ->default_str("99")
      ->group(kBenchmarkGroup);
}

void add_output_flags(CLI::App& verb, MmFlags& flags) {
  add_output_file(verb, "--output-json", flags.output_json, "Write all figures as JSON");
}

/// Given flags that do nothing: those of another data set.
std::vector<std::string> flags_without_effect(const CLI::App& verb, const MmFlags& flags) {
  std::vector<std::string> names;
  for (const CLI::Option* option : verb.get_options()) {
    if (option->count() == 0) continue;
    const std::string name = option->get_name();
    const bool hub_only = name.starts_with("--hf-");
    const bool random_only = name.starts_with("--random-mm-") || name == "--encoded";
    const bool sizes = name == "--random-mm-bucket-config";
    if ((hub_only && !flags.from_hub()) || (random_only && !flags.random()) ||
        (sizes && flags.dataset_name != "random-mm")) {
      names.push_back(name);
    }
  }
  return names;
}

}  // namespace

void add_mm_flags(CLI::App& verb, MmFlags& flags) {
  add_model(verb, flags.engine);
  add_workload_flags(verb, flags);
  add_benchmark_flags(verb, flags);
  add_output_flags(verb, flags);
  add_threads(verb, flags.engine);
  add_decode_processes(verb, flags.engine);
  add_engine_flags(verb, flags.engine);
  verb.get_option("--seed")->description("Seed of the workload and of dummy weights (default: 0)");
  verb.parse_complete_callback([&verb, &flags] {
    flags.without_effect = flags_without_effect(verb, flags);
    flags.arrivals.seed = flags.seed();
    flags.hub.path = flags.dataset_path;
  });
}

void check_mm_flags(const MmFlags& flags) {
  if (flags.random() != flags.dataset_path.empty()) {
    throw UsageError(flags.random()
                         ? "--dataset-path: only dir, jsonl and hf read files, the data set is " +
                               flags.dataset_name
                         : "--dataset-path is required by --dataset-name " + flags.dataset_name);
  }
  if (flags.compare && !flags.in_turn()) {
    throw UsageError(
        "--compare sends one request at a time; leave out --request-rate and "
        "--max-concurrency");
  }
}

}  // namespace fovea::cli
