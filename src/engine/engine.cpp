// The engine: what happens to a batch, in order. Start reading at Engine::Impl::encode.
#include "fovea/engine.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/boundary.h"
#include "core/check.h"
#include "core/interrupt.h"
#include "engine/call_scope.h"
#include "engine/engine_impl.h"
#include "engine/prepare/check_item.h"
#include "engine/video_pruning.h"
#include "graph/graph_stats.h"

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

}  // namespace

void Engine::Impl::Call::tell(std::int64_t items_done) const {
  if (how.progress && items_done > 0) call_back(how.progress, items_done, std::ssize(media));
}

std::vector<Embedding> Engine::Impl::encode(ItemView media, const EncodeOptions& how,
                                            const Destinations& to) {
  const CallScope scope(how.bounds, "encode");
  std::vector<Embedding> results(media.size());
  Call call{.media = media, .how = how, .to = to, .results = results};
  if (!to.blocks.empty()) check_room(call);
  if (row_cache && how.use_cache && !how.enforce_eager) {
    run_cached(call);
  } else {
    std::vector<std::size_t> all(media.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    run(call, std::move(all), [](std::size_t) {});
  }
  for (const Destinations& copy : how.copies) copy_rows(call, copy);
  return results;
}

void Engine::Impl::run(Call& call, std::vector<std::size_t> which, const Finished& finished) {
  call.done += static_cast<std::int64_t>(
      std::erase_if(which, [&](std::size_t item) { return call.results[item].error.has_value(); }));
  const SessionOfCall session(sessions, {&call.to.stream, 1});
  PreparedWindows windows(
      {prepare_context(), decode_pool, on_host(), window_budget_bytes(decode_pool.size())},
      call.media, order(call, which));
  while (!windows.done()) {
    const std::int64_t before = call.done;
    const PreparedWindows::Window window = windows.next();
    check_interrupt();  // the end of a call is no error of its items
    submit(*session, window, call);
    call.done += std::ssize(window.prepared);
    if (on_host()) finish(call, window.call.items, finished);
    call.tell(on_host() ? call.done : before);  // a GPU is still at work on this window
  }
  if (on_host()) which.clear();  // they are finished
  const std::vector<std::size_t> found = move_known(*session, call);
  which.insert(which.end(), found.begin(), found.end());
  session->finish();
  const bool ends = !on_host() || !which.empty();
  finish(call, which, finished);
  move_seen(*session, call);
  if (ends) call.tell(call.done);
}

void Engine::Impl::finish(const Call& call, std::span<const std::size_t> items,
                          const Finished& finished) {
  for (const std::size_t item : items) {
    Embedding& result = call.results[item];
    const bool is_encoded = !is_finished(call.media[item]) && !result.error;
    if (options.video_pruning_rate > 0 && is_encoded && result.modality == Modality::kVideo) {
      prune_video(result, options.video_pruning_rate, decode_pool);
    }
    finished(item);
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

std::vector<std::optional<ItemPlan>> Engine::Impl::sizes_ahead(ItemView media,
                                                               std::span<const std::size_t> which) {
  std::vector<std::optional<ItemPlan>> sizes(which.size());
  decode_pool.parallel_for(std::ssize(which), [&](std::int64_t i, int) {
    const auto place = static_cast<std::size_t>(i);
    sizes[place] = fovea::plan_ahead(model(), media[which[place]], options.media);
  });
  return sizes;
}

std::vector<CallWindow> Engine::Impl::order(const Call& call, std::span<const std::size_t> which) {
  std::vector<std::optional<ItemPlan>> sizes(which.size());
  if (which.size() > 1) {  // a single item goes with none
    if (call.sizes.empty()) {
      sizes = sizes_ahead(call.media, which);
    } else {
      std::ranges::transform(which, sizes.begin(), [&](std::size_t i) { return call.sizes[i]; });
    }
  }
  std::vector<CallWindow> windows = order_call(call_limits(call.how.enforce_eager), sizes);
  for (CallWindow& window : windows) {
    for (std::size_t& item : window.items) item = which[item];
  }
  return windows;
}

void Engine::Impl::submit(GroupSession& session, const PreparedWindows::Window& window,
                          Call& call) {
  std::vector<TowerItem> items;
  items.reserve(window.prepared.size());
  Assignment assignment{.counts = std::vector<std::size_t>(replicas->size())};
  for (std::size_t i = 0; i < window.prepared.size(); ++i) {
    const std::size_t item = window.call.items[i];
    const PreparedMedia& prepared = window.prepared[i];
    call.results[item] = describe(call.media[item], prepared);
    if (prepared.error) {
      fail(call, item, *prepared.error);
    } else if (is_finished(call.media[item])) {
      take_finished(call, item);
    } else if (has_room(call, item, final_rows(prepared.item.plan))) {
      if (!window.call.replicas.empty()) {
        assignment.order.push_back(items.size());
        ++assignment.counts[window.call.replicas[i]];
      }
      RowCache::Claim* const keep =
          call.cached == nullptr ? nullptr : call.cached->keeper(item, call.results[item]);
      items.push_back({&prepared.item, tower_target(call, item), keep});
    }
  }
  if (window.call.replicas.empty()) {
    session.begin(items, call.how);
  } else {
    session.begin(items, assignment, call.how);
  }
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;

std::vector<Embedding> Engine::encode(std::span<const MediaItem> items,
                                      const EncodeOptions& options) try {
  FOVEA_CHECK(options.copies.empty(), kInvalidArgument,
              "copies of rows need destinations that they are copies of");
  return impl_->encode(items, options, {});
} catch (...) {
  rethrow_as_error();
}

std::vector<Embedding> Engine::encode(std::span<const MediaItem> items,
                                      std::span<const RowBlock> destinations,
                                      const CallerStream& stream,
                                      const EncodeOptions& options) try {
  return impl_->encode_to({destinations, stream}, items, options);
} catch (...) {
  rethrow_as_error();
}

void Engine::warm_up(const CallBounds& bounds) try {
  const CallScope scope(bounds, "warm_up");
  impl_->replicas->for_each([](Replica& replica) {  // GPUs capture on threads of their own already
    replica.graphs().wait_for_background();
    replica.graphs().capture();
  });
} catch (...) {
  rethrow_as_error();
}

std::size_t Engine::trim() try {
  const auto allocated = [this] {
    std::size_t bytes = 0;
    for (const Backend& backend : impl_->backends) bytes += backend.device->allocated_bytes();
    return bytes;
  };
  const std::size_t before = allocated();
  impl_->sessions.clear();
  impl_->gathers.clear();
  impl_->decode_budget.trim();
  impl_->replicas->for_each([](Replica& replica) { replica.graphs().trim(); });
  return before - std::min(before, allocated());
} catch (...) {
  rethrow_as_error();
}

const ModelReport& Engine::report() const { return impl_->report; }

const std::string& Engine::fingerprint() const noexcept { return impl_->fingerprint; }

std::optional<double> Engine::Impl::energy_joules() const {
  std::optional<double> all;
  for (const EnergyCounter& counter : energy) {
    const std::optional<double> joules = counter.joules();
    if (!joules) return std::nullopt;
    all = all.value_or(0) + *joules;
  }
  return all;
}

Stats Engine::stats() const try {
  Stats stats = sum(impl_->replicas->stats());
  if (const std::int64_t items = impl_->precomputed_items; items > 0) {
    stats.skipped += items;
    stats.miss_reasons[std::string(to_string(MissReason::kPrecomputed))] += items;
  }
  if (impl_->row_cache) stats.encoder_cache = impl_->row_cache->stats();
  stats.skipped += stats.encoder_cache.hits + stats.encoder_cache.joins;
  stats.energy_joules = impl_->energy_joules();
  return stats;
} catch (...) {
  rethrow_as_error();
}

std::vector<ReplicaStats> Engine::replica_stats() const try {
  return impl_->replicas->stats();
} catch (...) {
  rethrow_as_error();
}

std::string Engine::device() const try {
  std::string text;
  for (const Backend& backend : impl_->backends) {
    const DeviceProperties& properties = backend.device->properties();
    text += cat(text.empty() ? "" : "; ", properties.name, ", ", properties.description, ", ",
                properties.parallelism, properties.host_memory ? " threads" : " SMs");
  }
  return text;
} catch (...) {
  rethrow_as_error();
}

}  // namespace fovea
