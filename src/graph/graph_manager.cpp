// Packs, then replays or runs eagerly: this file decides, the others do.
#include "graph/graph_manager.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <limits>
#include <utility>

#include "core/stopwatch.h"
#include "fovea/log.h"
#include "graph/budgets.h"
#include "ops/context.h"

namespace fovea {

namespace {

GraphConfig resolve(const EncoderGraphModel& model, const GraphManagerOptions& options) {
  validate_graph_options(options.user);
  const GraphSpec& spec = model.graph_spec();
  if (!options.user.cudagraph_mm_encoder) {
    return eager_config(spec, options.max_num_batched_tokens);
  }
  return resolve_graph_config(spec,
                              [&] { return model.budget_range(options.max_num_batched_tokens); },
                              {.user = options.user,
                               .video_allowed = options.video_allowed,
                               .compat = options.compat,
                               .log = options.log});
}

PackingLimits limits_of(const GraphConfig& config) {
  return {.path_budgets = config.path_budgets,
          .max_items = config.max_items,
          .max_seqs = config.max_seqs};
}

bool needs_no_path(const ItemSpec& spec) {
  return std::all_of(spec.path_tokens.begin(), spec.path_tokens.end(),
                     [](std::int64_t tokens) { return tokens == 0; });
}

}  // namespace

std::vector<GraphKey> capture_order(const GraphSpec& spec, const GraphConfig& config) {
  std::vector<AxisKeys> combinations{AxisKeys{}};
  for (const std::vector<std::int64_t>& axis : spec.axes) {
    std::vector<AxisKeys> longer;
    for (AxisKeys keys : combinations) {
      const auto place = static_cast<std::size_t>(keys.count++);
      for (const std::int64_t key : axis) {
        keys.keys[place] = key;
        longer.push_back(keys);
      }
    }
    combinations = std::move(longer);
  }
  std::vector<GraphKey> order;
  for (std::size_t path = 0; path < config.path_budgets.size(); ++path) {
    const std::vector<std::int64_t>& budgets = config.path_budgets[path];
    for (auto budget = budgets.rbegin(); budget != budgets.rend() && *budget > 0; ++budget) {
      for (const AxisKeys& axes : combinations) {
        order.push_back({.path = static_cast<PathId>(path), .budget = *budget, .axes = axes});
      }
    }
  }
  return order;
}

Packing plan_packing(const GraphConfig& config, std::span<const ItemSpec> items,
                     PackingPolicy policy) {
  Packing packing;
  pack(items, limits_of(config), PackingCosts::from_budgets(config.path_budgets), policy, packing);
  return packing;
}

GraphManager::GraphManager(const EncoderGraphModel& model, Device& device,
                           const GraphManagerOptions& options)
    : model_(model),
      options_(options),
      config_(resolve(model, options)),
      limits_(limits_of(config_)),
      costs_(PackingCosts::from_budgets(config_.path_budgets)),
      lane_(device),
      eager_(model, lane_),
      memory_(model, lane_),
      stats_(model.graph_spec()) {}

// --- capture ---

std::unique_ptr<BudgetGraph> GraphManager::make_graph(const GraphKey& key) const {
  const PathSpec& path = model_.graph_spec().paths[static_cast<std::size_t>(key.path)];
  return std::make_unique<BudgetGraph>(
      model_, lane_.device(), key,
      GraphCapacity{.tokens = capacity_of_budget(key.budget, path.unit),
                    .items = config_.max_items,
                    .seqs = config_.max_seqs,
                    .axes = key.axes});
}

std::vector<std::unique_ptr<BudgetGraph>> GraphManager::make_missing(
    std::span<const GraphKey> keys) {
  std::vector<std::unique_ptr<BudgetGraph>> missing;
  for (const GraphKey& key : keys) {
    if (find_graph(key) == nullptr) missing.push_back(make_graph(key));
  }
  return missing;
}

void GraphManager::make_room(std::vector<std::unique_ptr<BudgetGraph>>& graphs) {
  const bool moves = std::any_of(graphs.begin(), graphs.end(), [&](const auto& graph) {
    return !memory_.holds(graph->key().path, graph->need());
  });
  if (!moves) return;
  for (auto& graph : std::exchange(graphs_, {})) graphs.push_back(std::move(graph));
  for (const auto& graph : graphs) memory_.reserve(graph->key().path, graph->need());
}

void GraphManager::ensure_captured(std::span<const GraphKey> keys) {
  const double start = now_ms();
  auto missing = make_missing(keys);
  if (missing.empty()) return;
  make_room(missing);
  const std::size_t first_new = graphs_.size();
  for (auto& graph : missing) {
    graph->capture(lane_, memory_);
    graphs_.push_back(std::move(graph));
  }
  if (options_.measure) {
    for (std::size_t i = first_new; i < graphs_.size(); ++i) measure(*graphs_[i]);
    costs_ = measured_costs(config_.path_budgets, times_);
    eager_.clear();  // had grown to the size of the largest graph
  }
  capture_ms_ += now_ms() - start;
}

void GraphManager::capture() {
  const std::lock_guard lock(mutex_);
  if (!options_.user.cudagraph_mm_encoder) return;
  ensure_captured(capture_order(model_.graph_spec(), config_));
  log_to(options_.log, LogLevel::kInfo,
         cat("encoder_graphs.captured count=", graphs_.size(), " ms=", capture_ms_,
             " arena_bytes=", memory_.arena_bytes(), " input_bytes=", memory_.input_bytes(),
             " output_bytes=", memory_.output_bytes()));
}

void GraphManager::capture_in_background() {
  if (!options_.user.cudagraph_mm_encoder) return;
  background_ = std::jthread([this](const std::stop_token& stop) {
    try {
      const std::vector<GraphKey> keys = capture_order(model_.graph_spec(), config_);
      {
        const std::lock_guard lock(mutex_);
        auto graphs = make_missing(keys);
        make_room(graphs);
      }
      for (const GraphKey& key : keys) {
        if (stop.stop_requested()) return;
        const std::lock_guard lock(mutex_);
        ensure_captured({&key, 1});
      }
    } catch (const std::exception& error) {  // a thread must answer for everything
      log_to(options_.log, LogLevel::kError,
             cat("encoder_graphs.capture_failed message=", error.what()));
      background_failure_ = std::current_exception();
    }
  });
}

void GraphManager::wait_for_background() {
  if (background_.joinable()) background_.join();
  if (background_failure_) std::rethrow_exception(std::exchange(background_failure_, nullptr));
}

double GraphManager::now_ms() const {
  if (options_.clock_ms) return options_.clock_ms();
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(now).count();
}

void GraphManager::measure(const BudgetGraph& graph) {
  constexpr int kRepetitions = 3;
  const PathId path = graph.key().path;
  const std::vector<PreparedItem> blank = filling_items(model_, path, graph.capacity());
  if (blank.empty()) return;
  std::vector<const PreparedItem*> items;
  for (const PreparedItem& item : blank) items.push_back(&item);
  const auto best_ms = [&](auto&& run) {
    double best = std::numeric_limits<double>::infinity();
    for (int repetition = 0; repetition <= kRepetitions; ++repetition) {
      const double start = now_ms();
      run();
      lane_.synchronize();
      if (repetition > 0) best = std::min(best, now_ms() - start);  // the first one warms up
    }
    return best;
  };
  GraphTimes times{.path = path, .budget = graph.key().budget};
  times.replay_ms = best_ms([&] { (void)graph.replay(lane_, memory_, items, inputs_); });
  times.eager_ms = best_ms([&] { (void)eager_.run(path, items); });
  std::erase_if(times_, [&](const GraphTimes& old) {
    return old.path == times.path && old.budget == times.budget;
  });
  times_.push_back(times);
}

void GraphManager::clear() {
  const std::lock_guard lock(mutex_);
  graphs_.clear();
  memory_.clear();
}

bool GraphManager::is_captured() const {
  const std::lock_guard lock(mutex_);
  return !graphs_.empty();
}

BudgetGraph* GraphManager::find_graph(const GraphKey& key) {
  const auto found = std::find_if(graphs_.begin(), graphs_.end(),
                                  [&](const auto& graph) { return graph->key() == key; });
  return found == graphs_.end() ? nullptr : found->get();
}

void GraphManager::capture_for(const SubBatch& batch) {
  std::array<GraphKey, kMaxPaths> keys{};
  std::size_t count = 0;
  for (std::size_t path = 0; path < config_.path_budgets.size(); ++path) {
    if (const auto key = key_of(static_cast<PathId>(path), batch)) keys[count++] = *key;
  }
  ensure_captured(std::span(keys.data(), count));
}

// --- execution ---

void GraphManager::execute(Items items, Rows out) {
  run(items, out,
      options_.user.cudagraph_mm_encoder ? std::nullopt
                                         : std::optional<MissReason>(MissReason::kDisabled));
}

void GraphManager::execute_eager(Items items, Rows out, MissReason reason) {
  run(items, out, reason);
}

bool GraphManager::serves(const ItemPlan& plan) const {
  if (plan.modality == Modality::kVideo && config_.max_frames == 0) return false;
  const std::vector<Modality>& served = model_.graph_spec().modalities;
  return std::find(served.begin(), served.end(), plan.modality) != served.end();
}

void GraphManager::run(Items items, Rows out, std::optional<MissReason> forced) {
  const std::lock_guard lock(mutex_);
  check_destinations(items, out);
  const double host_ms_before = host_ms();
  try {
    submit(items, out, forced);
  } catch (...) {
    // What was submitted before the failure still writes to `out`, which the caller is free to
    // release once this exception arrives.
    const std::exception_ptr failure = std::current_exception();
    lane_.synchronize();
    std::rethrow_exception(failure);
  }
  lane_.synchronize();
  packing_ms_ += host_ms() - host_ms_before;
  stats_.log_progress(options_.log, options_.log_interval);
}

void GraphManager::check_destinations(Items items, Rows out) const {
  FOVEA_CHECK(items.size() == out.size(), kInvalidArgument, items.size(),
              " items need as many "
              "destinations, got ",
              out.size());
  const std::int64_t width = model_.graph_spec().out_width;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::int64_t rows = items[i]->plan.spec.out_rows;
    FOVEA_CHECK(rows == 0 || out[i].shape == Shape({rows, width}), kInvalidArgument, "item ", i,
                " needs a destination of [", rows, ", ", width, "], got ", out[i].shape);
  }
}

void GraphManager::submit(Items items, Rows out, std::optional<MissReason> forced) {
  const auto select = [&](auto&& wanted) {
    selection_.clear();
    for (std::size_t i = 0; i < items.size(); ++i) {
      const ItemPlan& plan = items[i]->plan;
      if (!needs_no_path(plan.spec) && wanted(plan)) {
        selection_.push_back(static_cast<std::int64_t>(i));
      }
    }
  };
  stats_.count_skipped(std::count_if(items.begin(), items.end(), [](const PreparedItem* item) {
    return needs_no_path(item->plan.spec);
  }));
  if (forced) {
    select([](const ItemPlan&) { return true; });
    run_selection(items, out, forced);
  } else {
    select([&](const ItemPlan& plan) { return serves(plan); });
    run_selection(items, out, std::nullopt);
    select([&](const ItemPlan& plan) { return !serves(plan); });
    run_selection(items, out, MissReason::kUnsupportedModality);
  }
}

void GraphManager::run_selection(Items items, Rows out, std::optional<MissReason> forced) {
  if (selection_.empty()) return;
  specs_.clear();
  for (const std::int64_t index : selection_) {
    specs_.push_back(items[static_cast<std::size_t>(index)]->plan.spec);
  }
  const Stopwatch packing;
  pack(specs_, limits_, costs_, options_.packing, packing_);
  pack_ms_ += packing.elapsed_ms();
  for (const SubBatch& batch : packing_.batches) run_sub_batch(batch, items, out, forced);
}

void GraphManager::run_sub_batch(const SubBatch& batch, Items items, Rows out,
                                 std::optional<MissReason> forced) {
  batch_items_.clear();
  batch_out_.clear();
  for (const std::int64_t packed : packing_.items(batch)) {
    const auto index = static_cast<std::size_t>(selection_[static_cast<std::size_t>(packed)]);
    batch_items_.push_back(items[index]);
    batch_out_.push_back(out[index]);
  }

  const std::size_t num_paths = config_.path_budgets.size();
  if (!forced && options_.missing == MissingGraph::kCapture) capture_for(batch);
  std::array<PathOutput, kMaxPaths> outputs{};
  GraphStats::Outcome outcome{.items = batch.count};
  for (std::size_t i = 0; i < num_paths; ++i) {
    const auto path = static_cast<PathId>(i);
    if (batch.load[i] == 0) continue;
    const std::optional<MissReason> miss = forced ? forced : try_replay(path, batch, outputs[i]);
    if (!miss) {
      ++outcome.replayed_paths;
      continue;
    }
    if (outcome.eager_paths++ == 0) outcome.reason = *miss;
    outputs[i] = eager_.run(path, batch_items_);
    stats_.count_eager(path);
  }

  Arena scratch = outcome.eager_paths > 0 ? eager_.arena() : memory_.arena();
  ExecContext ctx{.stream = lane_.compute(),
                  .kernels = lane_.device().kernels(),
                  .arena = scratch,
                  .side = lane_.side()};
  model_.assemble(ctx, std::span(outputs.data(), num_paths), batch_items_, batch_out_);
  stats_.count_sub_batch(outcome);
}

std::optional<GraphKey> GraphManager::key_of(PathId path, const SubBatch& batch) const {
  const std::optional<std::int64_t> budget = batch.budgets[static_cast<std::size_t>(path)];
  if (!budget || *budget == 0 || batch.too_many_seqs) return std::nullopt;
  const GraphKey key{.path = path, .budget = *budget, .axes = model_.axis_keys(batch_items_)};
  const std::size_t num_axes = model_.graph_spec().axes.size();
  FOVEA_CHECK(key.axes.count == static_cast<int>(num_axes), kInternal,
              "capture axis keys of a batch: expected ", num_axes, ", got ", key.axes.count);
  return key;
}

bool GraphManager::eager_wins(const GraphKey& key) const {
  return std::any_of(times_.begin(), times_.end(), [&](const GraphTimes& times) {
    return times.path == key.path && times.budget == key.budget && eager_is_faster(times);
  });
}

std::optional<MissReason> GraphManager::try_replay(PathId path, const SubBatch& batch,
                                                   PathOutput& output) {
  const std::optional<GraphKey> key = key_of(path, batch);
  if (!key) return batch.too_many_seqs ? MissReason::kFrames : MissReason::kOversized;
  const BudgetGraph* const graph = find_graph(*key);
  if (graph == nullptr) {
    warn_once(cat("encoder_graphs.not_captured path=", path, " budget=", key->budget));
    return MissReason::kNotCaptured;
  }
  if (eager_wins(*key)) return MissReason::kSlower;
  const auto index = static_cast<std::size_t>(path);
  const bool full = batch.load[index] == graph->capacity().tokens;
  if (model_.graph_spec().paths[index].exact_only && !full) return MissReason::kInexact;
  try {
    output = graph->replay(lane_, memory_, batch_items_, inputs_);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnavailable) throw;
    const auto overfull =
        std::find_if(inputs_.slots.begin(), inputs_.slots.end(),
                     [](const InputWriter::Slot& slot) { return slot.too_small; });
    warn_once(cat("encoder_graphs.input_too_small path=", path, " buffer=",
                  overfull == inputs_.slots.end() ? std::string("?") : overfull->decl->name));
    return MissReason::kCapacity;
  }
  stats_.count_replay(path, batch.count, batch.load[index], graph->capacity().tokens);
  return std::nullopt;
}

void GraphManager::warn_once(const std::string& line) {
  if (options_.log == nullptr || !warned_.insert(line).second) return;
  log_to(options_.log, LogLevel::kWarning, line);
}

// --- queries ---

void GraphManager::poison_memory() {
  const std::lock_guard lock(mutex_);
  eager_.poison();
  memory_.poison();
}

Stats GraphManager::stats() const {
  const GraphMemoryReport bytes = memory();
  const std::lock_guard lock(mutex_);
  Stats stats = stats_.snapshot();
  stats.num_budgets = static_cast<std::int64_t>(graphs_.size());
  stats.token_budgets = config_.token_budgets;
  for (std::size_t path = 0; path < stats.paths.size(); ++path) {
    if (options_.user.cudagraph_mm_encoder) {
      stats.paths[path].token_budgets = config_.path_budgets[path];
    }
  }
  stats.capture_seconds = capture_ms_ / 1000;
  stats.graph_bytes = static_cast<std::int64_t>(bytes.graphs());
  return stats;
}

double GraphManager::packing_ms() const {
  const std::lock_guard lock(mutex_);
  return packing_ms_;
}

GraphMemoryReport GraphManager::memory() const {
  const std::lock_guard lock(mutex_);
  GraphMemoryReport report{.arena = memory_.arena_bytes(),
                           .inputs = memory_.input_bytes(),
                           .outputs = memory_.output_bytes(),
                           .eager = eager_.device_bytes(),
                           .host = memory_.host_bytes()};
  for (const auto& graph : graphs_) report.recordings += graph->recording_bytes();
  return report;
}

std::vector<GraphKey> GraphManager::captured_keys() const {
  const std::lock_guard lock(mutex_);
  std::vector<GraphKey> keys;
  for (const auto& graph : graphs_) keys.push_back(graph->key());
  return keys;
}

}  // namespace fovea
