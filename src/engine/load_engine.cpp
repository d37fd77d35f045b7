// From a directory to an engine that can run: weights, devices, replicas, the encoder cache.
#include <utility>

#include "core/boundary.h"
#include "core/check.h"
#include "core/interrupt.h"
#include "device/device_memory.h"
#include "engine/cached/model_fingerprint.h"
#include "engine/engine_impl.h"
#include "engine/family_options.h"
#include "engine/graph_times.h"
#include "fovea/engine.h"
#include "fovea/log.h"
#include "fovea/option_table.h"
#include "models/load_model.h"
#include "models/registry.h"

namespace fovea {

namespace {

/// @param tensors of the caller; null: those of the files.
checkpoint::WeightSource open_weights(const checkpoint::HfConfig& files,
                                      const EngineOptions& options,
                                      const WeightTensors* tensors = nullptr) {
  (void)family_of(files);  // an unknown one is worse news than missing weights
  if (tensors != nullptr) {
    FOVEA_CHECK(!options.dummy_weights, kInvalidArgument, files.directory,
                ": expected either tensors or dummy weights, got both");
    return checkpoint::WeightSource::handed_over(files.directory, *tensors);
  }
  return options.dummy_weights ? checkpoint::WeightSource::dummy(options.seed)
                               : checkpoint::WeightSource::open(files.directory);
}

/// Sizes of the graphs, the same on every device: " graphs=2 ... budgets.<path>=16,64 ...".
std::string graphs_text(const GraphSpec& spec, const GraphConfig& config, PackingPolicy packing) {
  std::string text = cat(" graphs=", count_graphs(config), " max_items=", config.max_items,
                         " max_frames=", config.max_frames, " packing=", value_name(packing));
  for (std::size_t path = 0; path < spec.paths.size(); ++path) {
    text += cat(" budgets.", spec.paths[path].name, "=");
    const char* separator = "";
    for (const std::int64_t budget : config.path_budgets[path]) {
      if (budget == 0) continue;  // stands for a path that an item does not need
      text += cat(separator, budget);
      separator = ",";
    }
  }
  return text;
}

}  // namespace

void log_preprocessing(const checkpoint::HfConfig& files, const ItemProcessor& processor,
                       const EngineOptions& options) {
  for (const checkpoint::ShadowedFile& file : files.shadowed_files()) {
    std::string keys;
    for (const std::string& key : file.keys) keys += (keys.empty() ? "" : ",") + key;
    log_to(options.log, LogLevel::kWarning,
           cat("preprocessing.shadowed file=\"", file.path, "\" used=\"", file.used,
               "\" differ=", keys));
  }
  const std::string sources = processor.sources();
  if (!sources.empty()) {
    log_to(options.log, LogLevel::kDebug, cat("preprocessing.sources ", sources));
  }
  if (options.dummy_weights) return;
  const std::string assumed = processor.assumptions();
  if (!assumed.empty()) {
    log_to(options.log, LogLevel::kWarning, cat("preprocessing.assumed ", assumed));
  }
}

Engine::Impl::Impl(const std::string& model_directory, const WeightTensors* tensors,
                   const EngineOptions& engine_options)
    : directory(model_directory),
      options(with_patch_limit(engine_options)),
      files(read_model_files(directory, options)),
      processors(files, options.media, tower_output(options)),
      backends(make_backends(options)),
      energy(energy_counters(backends)),
      decode_pool(thread_count(options), ThreadPool::WhenBusy::kRunAlone),
      decode_budget(decode_budget_bytes(options.media.limits, decode_pool.size())),
      decode_processes(media::make_decode_processes(options.decode_processes, options.media)),
      sessions([this] { return std::make_unique<GroupSession>(*replicas); }),
      gathers([] { return std::make_unique<BatchMemory>(); }) {
  load(tensors);
}

void Engine::Impl::load(const WeightTensors* tensors) {
  check_family_options(files, options);
  const checkpoint::WeightSource weights = open_weights(files, options, tensors);
  {
    CheckedModel checked = check_model(files, options.media, weights, tower_output(options));
    report = std::move(checked.report);
    log_preprocessing(files, checked.planner->processor(), options);
  }
  throw_if_incomplete(report, files, weights);
  // A CPU captures in no time and has no threads to spare, a GPU warms kernels up: so it captures
  // in the background, or rehearses eager runs, and measures where a graph pays.
  const GraphManagerOptions graph_options{
      .user = options.graphs,
      .max_num_batched_tokens = options.max_num_batched_tokens,
      .videos_are_pruned = options.video_pruning_rate > 0,
      .packing = options.packing,
      .reuse_units = options.reuse_units,
      .missing = on_host() ? MissingGraph::kCapture : MissingGraph::kRunEager,
      .measure = !on_host() && options.measure_graphs,
      .log = options.log};
  std::vector<std::unique_ptr<Replica>> loaded;
  for (const Backend& backend : backends) {
    if (models.empty() || !on_host()) {  // replicas in host memory read the same weights
      const std::unique_ptr<Stream> stream = backend.device->create_copy_stream();
      models.push_back(load_model(files, options.media, weights, *backend.device, *stream,
                                  quantization_plan(options.quantization), tower_output(options)));
      stream->synchronize();
      if (models.size() == 1) report.weight_bytes = backend.device->allocated_bytes();
    }
    GraphManagerOptions own_options = graph_options;
    if (options.log != nullptr && backends.size() > 1) {
      replica_logs.push_back(std::make_unique<ReplicaLog>(*options.log, loaded.size()));
      own_options.log = replica_logs.back().get();
    }
    if (graph_options.measure && !options.cache_dir.empty()) {
      keep_graph_times(own_options, directory, backend.device->properties(), options);
    }
    loaded.push_back(std::make_unique<Replica>(*models.back(), *backend.device, own_options));
  }
  replicas = std::make_unique<ReplicaGroup>(std::move(loaded), options.team_patches);
  make_cache(weights);
  share_rows();
  log_initialized();
  if (on_host()) return;
  replicas->for_each([](Replica& replica) { replica.graphs().capture_in_background(); });
}

void Engine::Impl::make_cache(const checkpoint::WeightSource& weights) {
  const std::int64_t bytes = options.encoder_cache_bytes;
  FOVEA_CHECK(bytes >= 0, kInvalidArgument, "the encoder cache has at least 0 bytes, got ", bytes);
  const std::int64_t device_bytes = options.encoder_device_cache_size;
  FOVEA_CHECK(device_bytes >= 0, kInvalidArgument,
              "the encoder cache needs at least 0 bytes of a device, got ", device_bytes);
  if (bytes == 0 && device_bytes == 0) {
    FOVEA_CHECK(options.shared_rows.empty(), kInvalidArgument,
                "shared_rows: the rows of an encoder cache are shared, and there is none "
                "(encoder_cache_bytes, --encoder-cache-size)");
    return;
  }
  const DType activations = backends.front().device->properties().activation_dtype;
  fingerprint = model_fingerprint(files, weights, report.tensors,
                                  compute_dtype(options, activations), options, decode_pool);
  std::vector<Device*> devices;
  for (const Backend& backend : backends) devices.push_back(backend.device.get());
  row_cache = std::make_unique<RowCache>(devices, device_bytes, bytes);
  if (device_bytes > 0) lender.emplace(*row_cache, &name_memory);
}

void Engine::Impl::share_rows() {
  if (options.shared_rows.empty()) return;
  shared_rows = std::make_unique<SharedRows>(
      make_row_place(options),
      SharedRowsOptions{
          .dtype = tower_dtype(), .width = model().graph_spec().out_width, .log = options.log},
      [this](const std::string& key) { return cached_rows(key); });
}

void Engine::Impl::log_initialized() {
  if (!is_wanted(options.log, LogLevel::kInfo)) return;
  std::string devices;
  for (const Backend& backend : backends) {
    devices += cat(devices.empty() ? "" : ",", backend.device->properties().name);
  }
  const GraphConfig& config = (*replicas)[0].graphs().config();
  const DType activations = backends.front().device->properties().activation_dtype;
  const DType compute = compute_dtype(options, activations);
  log_to(
      options.log, LogLevel::kInfo,
      cat("engine.initialized model=\"", directory, "\" architecture=", report.architecture,
          " weight_bytes=", report.weight_bytes, " devices=", devices,
          compute == activations ? "" : cat(" compute=", to_string(compute)),
          " replicas=", replicas->size(),
          row_cache ? cat(" encoder_cache_bytes=", options.encoder_cache_bytes) : "",
          options.encoder_device_cache_size > 0
              ? cat(" encoder_device_cache_bytes=", options.encoder_device_cache_size)
              : "",
          options.video_pruning_rate > 0 ? cat(" video_pruning_rate=", options.video_pruning_rate)
                                         : "",
          options.graphs.cudagraph_mm_encoder
              ? graphs_text(model().graph_spec(), config, options.packing)
              : " graphs=off"));
}

Engine Engine::load(const std::string& model, const EngineOptions& options,
                    const CallBounds& bounds) try {
  const CallScope scope(bounds, "load");
  return Engine(std::make_unique<Impl>(model, nullptr, options));
} catch (...) {
  rethrow_as_error();
}

Engine Engine::from_weights(const std::string& model, const WeightTensors& weights,
                            const EngineOptions& options, const CallBounds& bounds) try {
  const CallScope scope(bounds, "load");
  return Engine(std::make_unique<Impl>(model, &weights, options));
} catch (...) {
  rethrow_as_error();
}

ModelReport inspect(const std::string& model, const EngineOptions& options,
                    const CallBounds& bounds) try {
  const CallScope scope(bounds, "inspect");
  const checkpoint::HfConfig files = read_model_files(model, options);
  check_family_options(files, options);
  CheckedModel checked =
      check_model(files, options.media, open_weights(files, options), tower_output(options));
  const std::string device = replica_devices(options).front();
  const Backend backend = make_backend(device, {.num_threads = 1,
                                                .quantization = options.quantization,
                                                .dtype_compute = options.dtype_compute,
                                                .log = options.log});
  add_memory_plan(checked.report, *checked.planner, *backend.device, options);
  return std::move(checked.report);
} catch (...) {
  rethrow_as_error();
}

}  // namespace fovea
