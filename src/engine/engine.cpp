// The engine: what happens to a batch, in order. Start reading at Engine::Impl::encode.
#include "fovea/engine.h"

#include <algorithm>
#include <utility>

#include "core/boundary.h"
#include "core/check.h"
#include "core/interrupt.h"
#include "engine/engine_impl.h"
#include "engine/option_values.h"
#include "engine/prepare/check_item.h"
#include "engine/pruning/video_pruning.h"
#include "graph/graph_stats.h"

namespace fovea {

namespace {

/// Fills in everything about a result but its rows.
void describe(const Item& item) {
  const PreparedMedia& prepared = item.prepared;
  Embedding& result = item.result();
  result = {};
  result.name = item.media->name;
  result.modality = item.media->modality;
  result.times = prepared.times;
  if (prepared.error) return;
  const ItemPlan& plan = prepared.item.plan;
  if (plan.has_grid_thw) result.grid_thw = plan.grid;
  result.source_width_px = plan.source_width_px;
  result.source_height_px = plan.source_height_px;
  result.num_frames = plan.num_frames;
  result.timestamps = prepared.timestamps;
  result.resized_width_px = plan.resized_width_px;
  result.resized_height_px = plan.resized_height_px;
}

}  // namespace

std::vector<Embedding> Engine::Impl::encode(ItemView media, const EncodeOptions& how,
                                            const Destinations* to) {
  check_values(how);
  const Destinations results;
  FOVEA_CHECK(to != nullptr || how.copies.empty(), kInvalidArgument,
              "copies of rows need destinations that they are copies of");
  if (to != nullptr) {
    check_destinations(*to, how.copies, media, report.width, *backends.front().device);
  }
  const CallScope scope(how.bounds, "encode");
  check_items(media);
  Call call(media, how, to != nullptr ? *to : results);
  if (!call.to.blocks.empty()) check_room(call);
  if (row_cache && how.use_cache && !how.enforce_eager) find_keys(call);
  CachedCall cached(row_cache.get(), call);
  try {
    if (shared_rows) cached.look_in(*shared_rows, *backends.front().device);
    do {
      run(call, cached);
    } while (cached.wait_for_others());
  } catch (const Error& error) {
    cached.failed(error);
    throw;
  }
  for (const Item& item : call.items) name_rows(item);
  for (const Destinations& copy : how.copies) copy_rows(call, copy);
  if (shared_rows) share(call);
  call.tell(std::ssize(call.items));
  return std::move(call.results);
}

void Engine::Impl::name_rows(const Item& item) const {
  Embedding& result = item.result();
  if (!item.key || result.error) return;
  const RowDType dtype = item.target.dtype;
  result.key = rows_key(*item.key, item.media->modality, dtype, options);
  const bool are_those_of_tower =
      dtype == tower_dtype() && !pruning_of(options).applies_to(result.modality);
  if (are_those_of_tower) result.cache_key = item.cache_key();
}

void Engine::Impl::find_keys(Call& call) {
  decode_pool.parallel_for(std::ssize(call.items), [&](std::int64_t i, int) {
    Item& item = call.items[static_cast<std::size_t>(i)];
    if (!item.result().error) item.key = item_key({fingerprint, options, &processors}, *item.media);
  });
}

void Engine::Impl::run(Call& call, CachedCall& cached) {
  const auto finish_encoded = [&](const Selection& items) {
    finish(items);
    std::ranges::for_each(items, [](Item* item) { CachedCall::encoded(*item); });
  };
  Selection last = cached.to_encode();  // what is finished at the end
  const SessionOfCall session(sessions, {&call.to.stream, 1});
  PreparedWindows windows(
      {.context = prepare_context(),
       .pool = decode_pool,
       .on_host = on_host(),
       .window_bytes = window_budget_bytes(decode_pool.size()),
       .has_room = [&call](const Item& item,
                           std::int64_t rows) { return !call.lacks_room(item, rows); }},
      order(call, last));
  while (!windows.done()) {
    const std::int64_t before = call.done;
    const PreparedWindows::Window window = windows.next();
    check_interrupt();  // the end of a call is no error of its items
    submit(*session, window, call);
    const bool is_refused = !window.is_last && window.items.front()->result().error;
    if (is_refused) windows.leave_stream();
    if (!window.is_last && !is_refused) continue;
    call.done += std::ssize(window.items);
    if (on_host()) finish_encoded(window.items);
    call.tell(on_host() ? call.done : before);  // a GPU is still at work on this window
  }
  if (on_host()) last.clear();
  const Selection found = take_found(call, cached);
  last.insert(last.end(), found.begin(), found.end());
  if (!call.known.empty()) session->move(std::exchange(call.known, {}));
  session->finish();
  for (SharedItem& item : call.shared) item.finish();
  call.shared.clear();
  finish_encoded(last);
  move_seen(*session, call);
  call.tell(call.done);
}

void Engine::Impl::finish(const Selection& items) {
  const PruningRule rule = pruning_of(options);
  for (const Item* item : items) {
    Embedding& result = item->result();
    const bool is_encoded = !is_finished(*item->media) && !result.error;
    if (is_encoded && rule.applies_to(result.modality)) {
      prune_video(result, rule, decode_pool);
    }
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

void Engine::Impl::check_items(ItemView media) const {
  for (std::size_t i = 0; i < media.size(); ++i) {
    const PlannedItem::Plan* const plan = media.plan(i);
    FOVEA_CHECK(plan == nullptr || plan->context == plan_context, kInvalidArgument, media[i].name,
                ": was planned by another engine");
    const auto* const block = std::get_if<PixelBlock>(&media[i].source);
    if (block != nullptr) check_block(*block, *backends.front().device, media[i].name);
  }
}

void Engine::Impl::plan(const Selection& items) {
  decode_pool.parallel_for(std::ssize(items), [&](std::int64_t i, int) {
    Item& item = *items[static_cast<std::size_t>(i)];
    if (!item.is_planned) item.plan = plan_ahead(model(), *item.media, options.media, &processors);
    item.is_planned = true;
  });
}

std::vector<PreparedWindows::Window> Engine::Impl::order(const Call& call, const Selection& items) {
  std::vector<std::optional<ItemPlan>> sizes(items.size());
  if (items.size() > 1) {  // a single item goes with none
    plan(items);
    std::ranges::transform(items, sizes.begin(), [](const Item* item) {
      return item->plan ? std::optional(item->wanted(*item->plan)) : std::nullopt;
    });
  }
  std::vector<PreparedWindows::Window> windows;
  for (CallWindow& window : order_call(call_limits(call.how.enforce_eager), sizes)) {
    windows.push_back({.items = {}, .replicas = std::move(window.replicas)});
    for (const std::size_t place : window.items) windows.back().items.push_back(items[place]);
  }
  return windows;
}

void Engine::Impl::submit(GroupSession& session, const PreparedWindows::Window& window,
                          Call& call) {
  std::vector<TowerItem> items;
  items.reserve(window.items.size());
  Assignment assignment{.counts = std::vector<std::size_t>(replicas->size())};
  for (std::size_t i = 0; i < window.items.size(); ++i) {
    Item& item = *window.items[i];
    if (window.is_stream) {
      const std::optional<TowerItem> units = take_units(session, call, item);
      if (units) items.push_back(*units);
      continue;
    }
    describe(item);
    if (item.prepared.error) {
      call.fail(item, *item.prepared.error);
    } else if (is_finished(*item.media)) {
      take_finished(call, item);
    } else if (call.has_room(
                   item, final_rows(item.wanted(item.prepared.item.plan), pruning_of(options)))) {
      if (!window.replicas.empty()) {
        assignment.order.push_back(items.size());
        ++assignment.counts[window.replicas[i]];
      }
      items.push_back(
          {&item.prepared.item, tower_target(item), CachedCall::keeper(item), item.share});
    }
  }
  if (window.replicas.empty()) {
    session.begin(items, call.how);
  } else {
    session.begin(items, assignment, call.how);
  }
  for (Item* item : window.items) item->prepared = {};
}

std::optional<TowerItem> Engine::Impl::take_units(GroupSession& session, Call& call, Item& item) {
  const PreparedMedia& prepared = item.prepared;
  const bool is_first = prepared.error || prepared.units.first == item.share.units.first;
  if (is_first && item.shared != nullptr) {  // what has begun counts no more
    session.finish();
    session.attach({&call.to.stream, 1});
    item.shared = nullptr;
    call.shared.pop_back();
  }
  if (is_first) describe(item);
  if (prepared.error) {
    call.fail(item, *prepared.error);
    return std::nullopt;
  }
  const ItemPlan plan = item.wanted(prepared.item.plan);
  if (is_first && call.has_room(item, final_rows(plan, pruning_of(options)))) {
    if (item.claim && !prepared.is_last) {
      item.claim->bypass();  // it would hold the item as a whole
      item.claim.reset();
    }
    if (item.key && !item.claim) item.result().cache = CacheUse::kBypass;
    const TowerItem all{&prepared.item, tower_target(item), CachedCall::keeper(item), item.share};
    if (prepared.is_last) return all;  // few of its frames can be read
    item.shared = &call.shared.emplace_back(all, model().graph_spec().out_width);
  }
  if (item.shared == nullptr) return std::nullopt;
  if (prepared.is_last) {
    item.result().times = prepared.times;
    item.result().timestamps = prepared.timestamps;
  }
  const bool counts = prepared.is_last && item.share.counts;
  return item.shared->add(prepared.item, {.units = prepared.units, .counts = counts});
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;

std::vector<Embedding> Engine::encode(std::span<const MediaItem> items,
                                      const EncodeOptions& options) try {
  return impl_->encode(items, options);
} catch (...) {
  rethrow_as_error();
}

std::vector<Embedding> Engine::encode(std::span<const PlannedItem> items,
                                      const EncodeOptions& options) try {
  return impl_->encode(items, options);
} catch (...) {
  rethrow_as_error();
}

std::vector<Embedding> Engine::encode(std::span<const PlannedItem> items,
                                      std::span<const RowBlock> destinations,
                                      const CallerStream& stream,
                                      const EncodeOptions& options) try {
  const Destinations to{destinations, stream};
  return impl_->encode(items, options, &to);
} catch (...) {
  rethrow_as_error();
}

std::vector<Embedding> Engine::encode(std::span<const MediaItem> items,
                                      std::span<const RowBlock> destinations,
                                      const CallerStream& stream,
                                      const EncodeOptions& options) try {
  const Destinations to{destinations, stream};
  return impl_->encode(items, options, &to);
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
  if (impl_->shared_rows) stats.encoder_cache.shared = impl_->shared_rows->stats();
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
