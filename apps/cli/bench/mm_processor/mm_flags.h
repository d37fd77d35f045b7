#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/mm_processor/hub_dataset.h"
#include "bench/mm_processor/runner.h"
#include "bench/mm_processor/sampling.h"
#include "core/json_writer.h"
#include "flags/flags.h"

namespace fovea::cli {

/// Flags of `fovea bench mm-processor`, as the user gave them. Names and defaults are those of
/// `vllm bench mm-processor`.
struct MmFlags {
  EngineFlags engine;
  std::string dataset_name = "random-mm";
  std::string dataset_path;
  HubDataset hub;  ///< of the data set "hf", whose path is dataset_path
  std::int64_t num_prompts = 10;
  std::optional<std::int64_t> num_warmups;
  SamplingOptions sampling;
  std::string encoded = "png";
  std::string dtype = "float32";
  Arrivals arrivals;
  std::optional<std::int64_t> max_images;  ///< of a request; absent: not limited
  std::optional<std::int64_t> max_videos;
  bool compare = false;
  std::int64_t host_load = 0;  ///< busy threads beside the run
  std::vector<double> percents{99};
  std::string output_json;
  std::vector<std::string> without_effect;  ///< flags that were given

  /// The seed of the workload and of dummy weights.
  [[nodiscard]] std::uint64_t seed() const { return engine.options.seed; }
  /// Whether requests are random, not read from files.
  [[nodiscard]] bool random() const {
    return dataset_name == "random-mm" || dataset_name == "vision-arena-like";
  }
  /// Whether requests are those of a data set of the hub.
  [[nodiscard]] bool from_hub() const { return dataset_name == "hf"; }
  /// Whether requests follow one another, each one timed on its own.
  [[nodiscard]] bool in_turn() const {
    return arrivals.per_second == 0 && arrivals.max_concurrency == 1;
  }
  [[nodiscard]] ImageEncoding encoding() const {
    return encoded == "png" ? ImageEncoding::kPng : ImageEncoding::kRaw;
  }
};

/// Adds all flags of the verb. `flags.without_effect` and the seed of the arrivals are filled when
/// the verb has been parsed.
void add_mm_flags(CLI::App& verb, MmFlags& flags);

/// @throws UsageError for flags that contradict each other.
void check_mm_flags(const MmFlags& flags);

/// All that repeats a run of `fovea bench mm-processor`: the settings of the workload, and under
/// "engine" those of the engine, as the user gave them or by default, members of "engine"
/// under the names of options. What was inferred, budgets for one, is in the statistics of the run.
[[nodiscard]] JsonObject config_json(const MmFlags& flags);

}  // namespace fovea::cli
