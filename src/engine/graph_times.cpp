// Measured times of graphs in a JSON file of the cache folder:
//   {"identity": "...", "graphs": [{"path": 0, "budget": 64,
//     "capacity": {"tokens": 64, "items": 16, "seqs": 16},
//     "full": {"tokens": 64, "replay_ms": 1.1, "eager_ms": 2.5}, "low": {as "full"}}, ...]}
#include "engine/graph_times.h"

#include <cmath>
#include <string_view>

#include "core/check.h"
#include "core/file.h"
#include "core/fnv1a.h"
#include "core/json.h"
#include "core/json_writer.h"
#include "fovea/log.h"
#include "fovea/version.h"

namespace fovea {

namespace {

/// Raised when what is measured changes, so that older times are not taken for it.
constexpr int kMeasurement = 4;
constexpr std::size_t kMaxFileBytes = std::size_t{4} << 20;  // some 20,000 graphs

/// Everything in the directory that decides about geometry and about the sizes of images.
std::string model_configuration(const std::string& directory) {
  std::string text;
  for (const char* name : {"config.json", "preprocessor_config.json", "processor_config.json",
                           "video_preprocessor_config.json"}) {
    const std::string path = directory + "/" + name;
    if (!path_exists(path)) continue;
    const std::vector<std::uint8_t> bytes = read_file(path, kMaxJsonBytes);
    text.append(name).append(bytes.begin(), bytes.end());
  }
  return text;
}

// Not a tree of the library: it allocates in its destructor.

std::string json_of(const GraphTimes::Load& load) {
  return cat("{\"tokens\": ", load.tokens, ", \"replay_ms\": ", json_number(load.replay_ms),
             ", \"eager_ms\": ", json_number(load.eager_ms), "}");
}

std::string json_of(const GraphTimes& times) {
  const GraphCapacity& capacity = times.capacity;
  return cat("{\"path\": ", times.key.path, ", \"budget\": ", times.key.budget,
             ", \"capacity\": {\"tokens\": ", capacity.tokens, ", \"items\": ", capacity.items,
             ", \"seqs\": ", capacity.seqs, "}, \"full\": ",
             json_of(GraphTimes::Load{times.tokens, times.replay_ms, times.eager_ms}),
             ", \"low\": ", json_of(times.low), "}");
}

/// A time of a load that was measured; without tokens it was not, and is 0.
double time_of(const JsonView& load, std::string_view key) {
  const double ms = load.at(key).as_number();
  const bool measured = load.at("tokens").as_int() > 0;
  FOVEA_CHECK(std::isfinite(ms) && (measured ? ms > 0 : ms == 0), kCorruptData, load.path(), ": ",
              key, " is ", ms);
  return ms;
}

GraphTimes::Load read_load(const JsonView& load) {
  return {.tokens = load.at("tokens").as_int(),
          .replay_ms = time_of(load, "replay_ms"),
          .eager_ms = time_of(load, "eager_ms")};
}

GraphCapacity read_capacity(const JsonView& view) {
  return {.tokens = view.at("tokens").as_int(),
          .items = view.at("items").as_int(),
          .seqs = view.at("seqs").as_int()};
}

GraphTimes read_times(const JsonView& view) {
  const GraphTimes::Load full = read_load(view.at("full"));
  FOVEA_CHECK(full.tokens > 0, kCorruptData, view.path(), ": no load");
  return {.key = {.path = static_cast<PathId>(view.at("path").as_int()),
                  .budget = view.at("budget").as_int()},
          .replay_ms = full.replay_ms,
          .eager_ms = full.eager_ms,
          .tokens = full.tokens,
          .low = read_load(view.at("low")),
          .capacity = read_capacity(view.at("capacity"))};
}

}  // namespace

std::string graph_times_identity(const std::string& model_directory, const DeviceProperties& device,
                                 const EngineOptions& options) {
  return cat("fovea ", version(), ", measurement ", kMeasurement, ", ", device.description, ", ",
             device.parallelism, " multiprocessors, ", device.software, ", attention ",
             static_cast<int>(options.attention), ", quantization ",
             static_cast<int>(options.quantization), ", model ", std::hex,
             fnv1a(model_configuration(model_directory)), std::dec, ", pixels ",
             options.media.min_pixels.value_or(0), " to ", options.media.max_pixels.value_or(0),
             options.tower.empty() ? "" : cat(", tower ", options.tower),
             options.vectors ? ", vectors" : "");
}

std::vector<GraphTimes> load_graph_times(const std::string& path, const std::string& identity) {
  try {
    const std::vector<std::uint8_t> bytes = read_file(path, kMaxFileBytes);
    const JsonDocument file = JsonDocument::parse(std::string(bytes.begin(), bytes.end()), path);
    if (file.root().at("identity").as_string() != identity) return {};
    std::vector<GraphTimes> all;
    for (const JsonView& graph : file.root().at("graphs").elements())
      all.push_back(read_times(graph));
    return all;
  } catch (const Error&) {
    return {};  // see the header
  }
}

void save_graph_times(const std::string& path, const std::string& identity,
                      std::span<const GraphTimes> times) {
  std::string text = cat("{\"identity\": ", json_quote(identity), ", \"graphs\": [");
  const char* separator = "\n";
  for (const GraphTimes& graph : times) {
    text += cat(separator, json_of(graph));
    separator = ",\n";
  }
  text += "\n]}\n";
  replace_file(path, text);
}

void keep_graph_times(GraphManagerOptions& manager, const std::string& model_directory,
                      const DeviceProperties& device, const EngineOptions& options) {
  const std::string identity = graph_times_identity(model_directory, device, options);
  const std::string path =
      cat(options.cache_dir, "/graph-times-", std::hex, fnv1a(identity), ".json");
  manager.stored_times = load_graph_times(path, identity);
  manager.store_times = [path, identity, log = options.log](std::span<const GraphTimes> times) {
    try {
      save_graph_times(path, identity, times);
    } catch (const std::exception& error) {
      log_to(log, LogLevel::kWarning, cat("cache_dir.not_written message=", error.what()));
    }
  };
}

}  // namespace fovea
