// The engine: what happens to a batch, in order. Start reading at Engine::Impl::encode.
#include "fovea/engine.h"

#include <algorithm>
#include <future>
#include <utility>

#include "core/check.h"
#include "core/stopwatch.h"
#include "engine/engine_impl.h"
#include "engine/output.h"

namespace fovea {

namespace {

/// Items prepared before the tower runs: enough to pack well, few enough to bound memory.
constexpr std::size_t kWindowItems = 64;

int thread_count(const EngineOptions& options) {
  FOVEA_CHECK(options.num_threads >= 0, kInvalidArgument, "number of threads must be >= 0, got ",
              options.num_threads);
  return options.num_threads == 0 ? available_cpus() : options.num_threads;
}

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
  result.resized_width_px = plan.resized_width_px;
  result.resized_height_px = plan.resized_height_px;
  return result;
}

checkpoint::WeightSource open_weights(const std::string& directory, const EngineOptions& options) {
  return options.dummy_weights ? checkpoint::WeightSource::dummy(options.seed)
                               : checkpoint::WeightSource::open(directory);
}

}  // namespace

Engine::Impl::Impl(const std::string& model_directory, const EngineOptions& engine_options)
    : directory(model_directory),
      options(engine_options),
      files(checkpoint::read_hf_config(directory)),
      backend(make_backend(options.device, options.num_threads, options.log)),
      decode_pool(thread_count(options)),
      stream(backend.device->create_stream()) {
  const ModelFamily& family = find_family(files.architecture());
  const checkpoint::WeightSource weights = open_weights(directory, options);
  report = family.describe(files, weights);
  model = family.load(files, options.media, weights, *backend.device, *stream);
  report.weight_bytes = backend.device->allocated_bytes();
  // A CPU captures in no time and has no threads to spare, a GPU warms kernels up: so it captures
  // in the background, and measures where a graph pays.
  const bool is_cpu = backend.device->properties().host_memory;
  graphs = std::make_unique<GraphManager>(
      *model, *backend.device,
      GraphManagerOptions{.user = options.graphs,
                          .max_num_batched_tokens = options.max_num_batched_tokens,
                          .packing = options.packing,
                          .missing = is_cpu ? MissingGraph::kCapture : MissingGraph::kRunEager,
                          .measure = !is_cpu,
                          .log = options.log});
  if (!is_cpu && options.graphs.cudagraph_mm_encoder) graphs->capture_in_background();
}

std::vector<Embedding> Engine::Impl::encode(std::span<const MediaItem> media,
                                            const EncodeOptions& how) {
  const std::lock_guard lock(mutex);
  const auto window = [&](std::size_t begin) {
    return media.subspan(begin, std::min(kWindowItems, media.size() - begin));
  };
  const auto prepare = [&](std::span<const MediaItem> items) {
    return prepare_all(*model, items, options.media, decode_pool);
  };
  // On a GPU the next window is decoded while the tower runs; a CPU has no idle cores to do that.
  const std::launch policy =
      backend.device->properties().host_memory ? std::launch::deferred : std::launch::async;
  std::vector<Embedding> results;
  results.reserve(media.size());
  std::future<std::vector<PreparedMedia>> next;
  for (std::size_t begin = 0; begin < media.size(); begin += kWindowItems) {
    std::vector<PreparedMedia> prepared = next.valid() ? next.get() : prepare(window(begin));
    if (begin + kWindowItems < media.size()) {
      next = std::async(policy, prepare, window(begin + kWindowItems));
    }
    encode_window(window(begin), prepared, how, results);
    if (how.progress) how.progress(std::ssize(results), std::ssize(media));
  }
  return results;
}

void Engine::Impl::encode_window(std::span<const MediaItem> media,
                                 std::span<PreparedMedia> prepared, const EncodeOptions& how,
                                 std::vector<Embedding>& results) {
  std::vector<const PreparedItem*> items;
  for (const PreparedMedia& one : prepared) {
    if (!one.error) {
      items.push_back(&one.item);
    } else if (how.on_error == OnError::kFail) {
      throw Error(*one.error);
    }
  }
  const Stopwatch tower;
  const double packing_before = graphs->packing_ms();
  std::vector<TensorView> rows;
  run_tower(items, how, rows);
  stream->synchronize();
  const double pack_ms = graphs->packing_ms() - packing_before;
  const double encode_ms = tower.elapsed_ms() - pack_ms;

  const Stopwatch output;
  const std::vector<ConstTensorView> host = rows_on_host(rows);
  std::int64_t total_rows = 0;
  for (const ConstTensorView& view : host) total_rows += view.shape[0];
  const std::size_t first = results.size();
  std::size_t next = 0;
  for (std::size_t i = 0; i < media.size(); ++i) {
    Embedding& result = results.emplace_back(describe(media[i], prepared[i]));
    if (result.error) continue;
    const ConstTensorView& view = host[next++];
    result.rows = view.shape[0];
    result.width = view.shape[1];
    result.dtype = how.dtype;
    result.data = convert_rows(view, how.dtype);
  }
  const double output_ms = output.elapsed_ms();
  for (Embedding& result : std::span(results).subspan(first)) {
    const double share =
        total_rows == 0 ? 0 : static_cast<double>(result.rows) / static_cast<double>(total_rows);
    result.times.pack_ms = pack_ms * share;
    result.times.encode_ms = encode_ms * share;
    result.times.output_ms = output_ms * share;
  }
}

std::vector<Embedding> Engine::Impl::encode_prepared(std::span<const PreparedItem* const> items,
                                                     const EncodeOptions& how) {
  const std::lock_guard lock(mutex);
  std::vector<TensorView> rows;
  run_tower(items, how, rows);
  stream->synchronize();
  std::vector<Embedding> results;
  for (const ConstTensorView& view : rows_on_host(rows)) {
    Embedding& result = results.emplace_back();
    result.rows = view.shape[0];
    result.width = view.shape[1];
    result.dtype = how.dtype;
    result.data = convert_rows(view, how.dtype);
  }
  return results;
}

void Engine::Impl::run_tower(std::span<const PreparedItem* const> items, const EncodeOptions& how,
                             std::vector<TensorView>& rows) {
  const DType dtype = backend.device->properties().activation_dtype;
  const std::int64_t width = model->graph_spec().out_width;
  std::int64_t total_rows = 0;
  for (const PreparedItem* item : items) total_rows += item->plan.spec.out_rows;
  const std::size_t bytes = static_cast<std::size_t>(total_rows * width) * size_of(dtype);
  if (row_memory.bytes() < bytes) {
    row_memory = Buffer{};  // release first: there may not be room for both
    row_memory = backend.device->allocate(bytes);
  }
  std::byte* next = row_memory.data();
  for (const PreparedItem* item : items) {
    rows.push_back({next, dtype, {item->plan.spec.out_rows, width}});
    next += rows.back().bytes();
  }
  if (how.enforce_eager) {
    graphs->execute_eager(items, rows);
  } else {
    graphs->execute(items, rows);
  }
}

std::vector<ConstTensorView> Engine::Impl::rows_on_host(std::span<const TensorView> rows) {
  if (backend.device->properties().host_memory || rows.empty()) return {rows.begin(), rows.end()};
  std::size_t bytes = 0;
  for (const TensorView& view : rows) bytes += view.bytes();
  if (host_memory.bytes() < bytes) {
    host_memory = Buffer{};
    host_memory = backend.device->allocate_host(bytes);
  }
  stream->copy(host_memory.data(), rows.front().data, bytes);  // rows lie one after the other
  stream->synchronize();
  std::vector<ConstTensorView> host;
  const std::byte* next = host_memory.data();
  for (const TensorView& view : rows) {
    host.push_back({next, view.dtype, view.shape});
    next += view.bytes();
  }
  return host;
}

Engine Engine::load(const std::string& model, const EngineOptions& options) {
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

void Engine::warm_up() {
  impl_->graphs->wait_for_background();
  if (impl_->options.graphs.cudagraph_mm_encoder) impl_->graphs->capture();
}

const ModelReport& Engine::report() const { return impl_->report; }

Stats Engine::stats() const { return impl_->graphs->stats(); }

std::string Engine::device() const {
  const DeviceProperties& properties = impl_->backend.device->properties();
  return cat(properties.name, ", ", properties.description, ", ", properties.parallelism,
             properties.host_memory ? " threads" : " multiprocessors");
}

ModelReport inspect(const std::string& model, const EngineOptions& options) {
  const checkpoint::HfConfig files = checkpoint::read_hf_config(model);
  const ModelFamily& family = find_family(files.architecture());
  ModelReport report = family.describe(files, open_weights(model, options));
  const Backend backend = make_backend(options.device, 1, options.log);
  add_memory_plan(report, *family.make_planner(files, options.media), *backend.device, options);
  return report;
}

}  // namespace fovea
