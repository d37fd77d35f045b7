// The engine: what happens to a batch, in order. Start reading at Engine::Impl::encode.
#include "fovea/engine.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "core/interrupt.h"
#include "engine/call_scope.h"
#include "engine/engine_impl.h"
#include "engine/graph_times.h"
#include "engine/output.h"
#include "engine/video_pruning.h"
#include "fovea/log.h"
#include "models/load_model.h"
#include "models/registry.h"

namespace fovea {

namespace {

/// Everything about a result but its rows.
Embedding describe(const MediaItem& media, const PreparedMedia& prepared) {
  Embedding result;
  result.name = media.name;
  result.modality = media.modality;
  result.times = prepared.times;
  result.error = prepared.error;
  if (prepared.error) return result;
  const ItemPlan& plan = prepared.item.plan;
  if (plan.has_grid_thw) result.grid_thw = plan.grid;
  result.source_width_px = plan.source_width_px;
  result.source_height_px = plan.source_height_px;
  result.num_frames = plan.num_frames;
  result.timestamps = prepared.timestamps;
  result.resized_width_px = plan.resized_width_px;
  result.resized_height_px = plan.resized_height_px;
  return result;
}

checkpoint::WeightSource open_weights(const checkpoint::HfConfig& files,
                                      const EngineOptions& options) {
  (void)find_family(files.architecture());  // an unknown one is worse news than missing weights
  return options.dummy_weights ? checkpoint::WeightSource::dummy(options.seed)
                               : checkpoint::WeightSource::open(files.directory);
}

ops::WeightFormat weight_format(Quantization quantization) {
  return quantization == Quantization::kFp8 ? ops::WeightFormat::kFp8 : ops::WeightFormat::kNative;
}

/// Sizes of the graphs, the same on every device: " graphs=2 ... budgets.<path>=16,64 ...".
std::string graphs_text(const GraphSpec& spec, const GraphConfig& config, PackingPolicy packing) {
  std::string text = cat(" graphs=", count_graphs(config), " max_items=", config.max_items,
                         " max_frames=", config.max_frames,
                         " packing=", packing == PackingPolicy::kCost ? "cost" : "greedy");
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

void warn_of_assumptions(const ItemProcessor& processor, const EngineOptions& options) {
  if (options.dummy_weights) return;
  const std::string assumed = processor.assumptions();
  if (!assumed.empty()) {
    log_to(options.log, LogLevel::kWarning, cat("preprocessing.assumed ", assumed));
  }
}

Engine::Impl::Impl(const std::string& model_directory, const EngineOptions& engine_options)
    : directory(model_directory),
      options(engine_options),
      files(checkpoint::read_hf_config(directory)),
      backends(make_backends(options)),
      decode_pool(thread_count(options), ThreadPool::WhenBusy::kRunAlone),
      decode_budget(decode_budget_bytes(options.media.limits, decode_pool.size())),
      decode_processes(media::make_decode_processes(options.decode_processes, options.media)),
      sessions([this] { return std::make_unique<GroupSession>(*replicas); }) {
  load();
}

void Engine::Impl::load() {
  check_video_pruning(files.architecture(), options.video_pruning_rate);
  const checkpoint::WeightSource weights = open_weights(files, options);
  {
    CheckedModel checked = check_model(files, options.media, weights);
    report = std::move(checked.report);
    warn_of_assumptions(checked.planner->processor(), options);
  }
  throw_if_incomplete(report, weights);
  // A CPU captures in no time and has no threads to spare, a GPU warms kernels up: so it captures
  // in the background, and measures where a graph pays.
  const GraphManagerOptions graph_options{
      .user = options.graphs,
      .max_num_batched_tokens = options.max_num_batched_tokens,
      .videos_are_pruned = options.video_pruning_rate > 0,
      .packing = options.packing,
      .missing = on_host() ? MissingGraph::kCapture : MissingGraph::kRunEager,
      .measure = !on_host() && options.measure_graphs,
      .log = options.log};
  std::vector<std::unique_ptr<Replica>> loaded;
  for (const Backend& backend : backends) {
    if (models.empty() || !on_host()) {  // replicas in host memory read the same weights
      const std::unique_ptr<Stream> stream = backend.device->create_copy_stream();
      models.push_back(load_model(files, options.media, weights, *backend.device, *stream,
                                  weight_format(options.quantization)));
      stream->synchronize();
      if (models.size() == 1) report.weight_bytes = backend.device->allocated_bytes();
    }
    GraphManagerOptions own_options = graph_options;
    if (graph_options.measure && !options.cache_dir.empty()) {
      keep_graph_times(own_options, directory, backend.device->properties(), options);
    }
    loaded.push_back(std::make_unique<Replica>(*models.back(), *backend.device, own_options));
  }
  replicas = std::make_unique<ReplicaGroup>(std::move(loaded));
  log_initialized();
  if (on_host() || !options.graphs.cudagraph_mm_encoder) return;
  replicas->for_each([](Replica& replica) { replica.graphs().capture_in_background(); });
}

void Engine::Impl::log_initialized() {
  if (!is_wanted(options.log, LogLevel::kInfo)) return;
  std::string devices;
  for (const Backend& backend : backends) {
    devices += cat(devices.empty() ? "" : ",", backend.device->properties().name);
  }
  const GraphConfig& config = (*replicas)[0].graphs().config();
  log_to(
      options.log, LogLevel::kInfo,
      cat("engine.initialized model=\"", directory, "\" architecture=", report.architecture,
          " weight_bytes=", report.weight_bytes, " devices=", devices,
          " replicas=", replicas->size(),
          options.video_pruning_rate > 0 ? cat(" video_pruning_rate=", options.video_pruning_rate)
                                         : "",
          options.graphs.cudagraph_mm_encoder
              ? graphs_text(model().graph_spec(), config, options.packing)
              : " graphs=off"));
}

std::vector<Embedding> Engine::Impl::encode(std::span<const MediaItem> media,
                                            const EncodeOptions& how) {
  const CallScope scope(how.bounds, "encode");
  const auto session = sessions.take();
  std::vector<Embedding> results(media.size());
  const auto tell = [&](std::size_t done) {
    if (how.progress && done > 0) how.progress(static_cast<std::int64_t>(done), std::ssize(media));
  };
  try {
    PreparedWindows windows(
        {prepare_context(), decode_pool, on_host(), window_budget_bytes(decode_pool.size())}, media,
        order(media, how.enforce_eager));
    for (std::size_t done = 0; !windows.done();) {
      const std::size_t before = done;
      const PreparedWindows::Window window = windows.next();
      check_interrupt();  // the end of a call is no error of its items
      submit(*session, window, {media, how, results});
      done += window.prepared.size();
      tell(on_host() ? done : before);  // a GPU is still at work on this window
    }
    session->finish();
  } catch (...) {
    session->abandon();  // it writes to the results, which are about to go
    throw;
  }
  prune_videos(media, results);
  if (!on_host()) tell(media.size());
  return results;
}

void Engine::Impl::prune_videos(std::span<const MediaItem> media, std::span<Embedding> results) {
  if (options.video_pruning_rate == 0) return;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const bool is_encoded = media[i].source != MediaItem::Source::kRows && !results[i].error;
    if (!is_encoded || results[i].modality != Modality::kVideo) continue;
    prune_video(results[i], options.video_pruning_rate, decode_pool);
  }
}

CallLimits Engine::Impl::call_limits(bool eager) const {
  return {.spec = model().graph_spec(),
          .config = (*replicas)[0].graphs().config(),
          .packing = options.packing,
          .graphs = options.graphs.cudagraph_mm_encoder && !eager,
          .num_replicas = replicas->size(),
          .on_host = on_host(),
          .window_bytes = window_budget_bytes(decode_pool.size())};
}

std::vector<CallWindow> Engine::Impl::order(std::span<const MediaItem> media, bool eager) {
  std::vector<std::optional<ItemPlan>> sizes(media.size());
  if (media.size() > 1) {  // a single item goes with none
    decode_pool.parallel_for(std::ssize(media), [&](std::int64_t i, int) {
      const auto item = static_cast<std::size_t>(i);
      sizes[item] = plan_ahead(model(), media[item], options.media);
    });
  }
  return order_call(call_limits(eager), sizes);
}

void Engine::Impl::submit(GroupSession& session, const PreparedWindows::Window& window,
                          const Call& call) {
  std::vector<const PreparedItem*> items;
  std::vector<Embedding*> rows;
  Assignment assignment{.counts = std::vector<std::size_t>(replicas->size())};
  for (std::size_t i = 0; i < window.prepared.size(); ++i) {
    const MediaItem& source = call.media[window.call.items[i]];
    Embedding& result = call.results[window.call.items[i]];
    result = describe(source, window.prepared[i]);
    if (result.error) {
      if (call.how.on_error == OnError::kFail) throw Error(*result.error);
    } else if (source.source == MediaItem::Source::kRows) {
      hand_on_rows(source, call.how.dtype, result);
      ++precomputed_items;
    } else {
      if (!window.call.replicas.empty()) {
        assignment.order.push_back(items.size());
        ++assignment.counts[window.call.replicas[i]];
      }
      items.push_back(&window.prepared[i].item);
      rows.push_back(&result);
    }
  }
  if (window.call.replicas.empty()) {
    session.begin(items, call.how, rows);
  } else {
    session.begin(items, assignment, call.how, rows);
  }
}

Engine Engine::load(const std::string& model, const EngineOptions& options,
                    const CallBounds& bounds) {
  const CallScope scope(bounds, "load");
  return Engine(std::make_unique<Impl>(model, options));
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;

std::vector<Embedding> Engine::encode(std::span<const MediaItem> items,
                                      const EncodeOptions& options) {
  return impl_->encode(items, options);
}

void Engine::warm_up(const CallBounds& bounds) {
  const CallScope scope(bounds, "warm_up");
  impl_->replicas->for_each([](Replica& replica) {  // GPUs capture on threads of their own already
    replica.graphs().wait_for_background();
    replica.graphs().capture();
  });
}

std::size_t Engine::trim() {
  const auto allocated = [this] {
    std::size_t bytes = 0;
    for (const Backend& backend : impl_->backends) bytes += backend.device->allocated_bytes();
    return bytes;
  };
  const std::size_t before = allocated();
  impl_->sessions.clear();
  impl_->replicas->for_each([](Replica& replica) { replica.graphs().trim(); });
  return before - std::min(before, allocated());
}

const ModelReport& Engine::report() const { return impl_->report; }

Stats Engine::stats() const {
  Stats stats = sum(impl_->replicas->stats());
  if (const std::int64_t items = impl_->precomputed_items; items > 0) {
    stats.skipped += items;
    stats.miss_reasons[std::string(to_string(MissReason::kPrecomputed))] += items;
  }
  return stats;
}

std::vector<ReplicaStats> Engine::replica_stats() const { return impl_->replicas->stats(); }

std::string Engine::device() const {
  std::string text;
  for (const Backend& backend : impl_->backends) {
    const DeviceProperties& properties = backend.device->properties();
    text += cat(text.empty() ? "" : "; ", properties.name, ", ", properties.description, ", ",
                properties.parallelism, properties.host_memory ? " threads" : " SMs");
  }
  return text;
}

ModelReport inspect(const std::string& model, const EngineOptions& options,
                    const CallBounds& bounds) {
  const CallScope scope(bounds, "inspect");
  const checkpoint::HfConfig files = checkpoint::read_hf_config(model);
  check_video_pruning(files.architecture(), options.video_pruning_rate);
  CheckedModel checked = check_model(files, options.media, open_weights(files, options));
  const std::string device = replica_devices(options).front();
  const Backend backend = make_backend(device, {.num_threads = 1, .log = options.log});
  add_memory_plan(checked.report, *checked.planner, *backend.device, options);
  return std::move(checked.report);
}

}  // namespace fovea
