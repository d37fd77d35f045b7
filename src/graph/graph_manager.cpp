// The parts of a manager, its graphs and its counters; graph_run.cpp runs items.
#include <memory>

#include "core/check.h"
#include "graph/graph_manager_impl.h"

namespace fovea {

GraphManager::Impl::Impl(const EncoderGraphModel& encoder, Device& device,
                         const GraphManagerOptions& choices)
    : model(encoder),
      options(choices),
      config(graph_config_of(encoder, choices.max_num_batched_tokens,
                             {.user = choices.user,
                              .video_allowed = choices.video_allowed && !choices.videos_are_pruned,
                              .log = choices.log})),
      cost_of_loads(PackingCosts::from_loads(config.path_budgets)),
      runners(encoder, config, device),
      stats(encoder.graph_spec()),
      batch_log(encoder.graph_spec(), device.properties().name, choices.log),
      warnings(choices.log),
      scratches([] { return std::make_unique<Scratch>(); }),
      capture(encoder, config, options, runners) {
  FOVEA_CHECK(options.log_interval >= 1, kInvalidArgument,
              "log_interval: expected at least 1, got ", options.log_interval);
}

GraphManager::GraphManager(const EncoderGraphModel& model, Device& device,
                           const GraphManagerOptions& options, TowerVersion<kTowerVersion>)
    : impl_(std::make_unique<Impl>(model, device, options)) {}

GraphManager::~GraphManager() = default;

// --- graphs ---

void GraphManager::capture() {
  if (impl_->options.user.cudagraph_mm_encoder) impl_->capture.capture_all();
}

void GraphManager::capture_in_background() { impl_->capture.start_in_background(); }

void GraphManager::wait_for_background() { impl_->capture.wait_for_background(); }

void GraphManager::trim() {
  const std::lock_guard lock(impl_->runners.mutex);
  impl_->runners.eager.clear();
  if (impl_->runners.graphs.graphs().empty()) impl_->runners.graphs.clear();
  impl_->scratches.clear();
}

void GraphManager::clear() {
  const std::lock_guard lock(impl_->runners.mutex);
  impl_->capture.clear();
}

bool GraphManager::is_captured() const {
  const std::lock_guard lock(impl_->runners.mutex);
  return !impl_->runners.graphs.graphs().empty();
}

// --- execution ---

RunTimes GraphManager::execute(std::span<const PreparedItem* const> items,
                               std::span<const TensorView> out, const RunOptions& how) {
  const bool graphs = impl_->options.user.cudagraph_mm_encoder;
  return impl_->run(items, out, graphs ? Impl::Forced() : MissReason::kDisabled, how);
}

RunTimes GraphManager::execute_eager(std::span<const PreparedItem* const> items,
                                     std::span<const TensorView> out, const RunOptions& how) {
  return impl_->run(items, out, MissReason::kRequested, how);
}

// --- queries ---

PackingPolicy GraphManager::packing() const noexcept { return impl_->options.packing; }

const GraphConfig& GraphManager::config() const noexcept { return impl_->config; }

std::size_t GraphManager::num_waiting() const { return impl_->runners.mutex.num_waiting(1); }

void GraphManager::fill_memory_with_nan() {
  const std::lock_guard lock(impl_->runners.mutex);
  impl_->runners.eager.memory().fill_with_nan();
  impl_->runners.graphs.memory().fill_with_nan();
}

Stats GraphManager::stats() const {
  const GraphMemoryReport bytes = memory();
  const std::lock_guard lock(impl_->runners.mutex);
  Stats stats = impl_->stats.snapshot();
  stats.num_budgets = std::ssize(impl_->runners.graphs.graphs());
  stats.token_budgets = impl_->config.token_budgets;
  for (std::size_t path = 0; path < stats.paths.size(); ++path) {
    if (impl_->options.user.cudagraph_mm_encoder) {
      stats.paths[path].token_budgets = impl_->config.path_budgets[path];
    }
  }
  stats.capture_seconds = impl_->capture.total_ms() / 1000;
  stats.graph_bytes = static_cast<std::int64_t>(bytes.graphs());
  for (const auto& graph : impl_->runners.graphs.graphs()) {
    stats.graphs.push_back(impl_->capture.report_of(*graph));
  }
  return stats;
}

GraphMemoryReport GraphManager::memory() const {
  const std::lock_guard lock(impl_->runners.mutex);
  const RunMemory& shared = impl_->runners.graphs.memory();
  return {.arena = shared.arena_bytes(),
          .inputs = shared.input_bytes(),
          .outputs = shared.output_bytes(),
          .recordings = impl_->runners.graphs.recording_bytes(),
          .eager = impl_->runners.eager.memory().device_bytes(),
          .host = shared.host_bytes()};
}

std::vector<GraphKey> GraphManager::captured_keys() const {
  const std::lock_guard lock(impl_->runners.mutex);
  std::vector<GraphKey> keys;
  for (const auto& graph : impl_->runners.graphs.graphs()) keys.push_back(graph->key());
  return keys;
}

}  // namespace fovea
