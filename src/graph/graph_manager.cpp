// Packs, then replays or runs eagerly: this file decides, the others do.
#include "graph/graph_manager.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <mutex>
#include <utility>

#include "core/stopwatch.h"
#include "fovea/log.h"
#include "ops/context.h"

namespace fovea {

namespace {

bool needs_no_path(const ItemSpec& spec) {
  return std::all_of(spec.path_tokens.begin(), spec.path_tokens.end(),
                     [](std::int64_t tokens) { return tokens == 0; });
}

}  // namespace

GraphManager::GraphManager(const EncoderGraphModel& model, Device& device,
                           const GraphManagerOptions& options)
    : model_(model),
      options_(options),
      config_(graph_config_of(
          model, options.max_num_batched_tokens,
          {.user = options.user, .video_allowed = options.video_allowed, .log = options.log})),
      limits_(limits_of(config_)),
      costs_(PackingCosts::from_budgets(config_.path_budgets)),
      known_times_(options.stored_times),
      lane_(device),
      eager_(model, lane_),
      graphs_(model, config_, lane_),
      stats_(model.graph_spec()) {
  for (GraphTimes& times : known_times_) times.stored = true;
}

// --- capture ---

void GraphManager::ensure_captured(std::span<const GraphKey> keys) {
  const bool complete = std::all_of(
      keys.begin(), keys.end(), [&](const GraphKey& key) { return graphs_.find(key) != nullptr; });
  if (complete) return;
  const double start = now_ms();
  const auto captured = graphs_.ensure(keys);
  if (options_.measure) {
    for (const auto& graph : captured) measure(*graph);
    costs_ = measured_costs(config_.path_budgets, times_);
  }
  for (const auto& graph : captured) log_capture(*graph);
  capture_ms_ += now_ms() - start;
}

void GraphManager::try_capture(std::span<const GraphKey> keys) {
  try {
    ensure_captured(keys);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kOutOfMemory) throw;
    give_up(keys);
  }
}

void GraphManager::give_up(std::span<const GraphKey> keys) {
  // Asking again would drop all others each time.
  unaffordable_.insert(unaffordable_.end(), keys.begin(), keys.end());
  for (const GraphKey& key : keys) {
    warn_once(cat("encoder_graphs.no_memory path=", key.path, " budget=", key.budget));
  }
}

std::optional<GraphTimes> GraphManager::time(const BudgetGraph& graph) {
  try {
    return time_graph({.model = model_,
                       .lane = lane_,
                       .memory = graphs_.memory(),
                       .eager = eager_,
                       .now_ms = [this] { return now_ms(); }},
                      graph);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kOutOfMemory) throw;
    warn_once(
        cat("encoder_graphs.not_measured path=", graph.key().path, " budget=", graph.key().budget));
    return std::nullopt;
  }
}

void GraphManager::measure(const BudgetGraph& graph) {
  const auto known =
      std::find_if(known_times_.begin(), known_times_.end(), [&](const GraphTimes& times) {
        return times.key.path == graph.key().path && times.capacity == graph.capacity();
      });
  std::optional<GraphTimes> times;
  if (known != known_times_.end()) {
    times = *known;
    times->key = graph.key();  // several budgets may round to one capacity
  } else {
    times = time(graph);
    eager_.clear();  // had grown to the size of the graph
    if (!times) return;
    known_times_.push_back(*times);
    has_new_times_ = true;
  }
  std::erase_if(times_, [&](const GraphTimes& old) { return old.key == times->key; });
  times_.push_back(*times);
}

void GraphManager::store_times() {
  std::vector<GraphTimes> times;
  {
    const std::lock_guard lock(mutex_);
    if (!options_.store_times || !std::exchange(has_new_times_, false)) return;
    times = known_times_;
  }
  options_.store_times(times);
}

GraphReport GraphManager::report_of(const BudgetGraph& graph) const {
  const GraphMemory::Need& need = graph.need();
  const GraphKey& key = graph.key();
  GraphReport report{.path = model_.graph_spec().paths[static_cast<std::size_t>(key.path)].name,
                     .budget = key.budget,
                     .capture_ms = graph.capture_ms(),
                     .recording_bytes = static_cast<std::int64_t>(graph.recording_bytes()),
                     .shared_bytes = static_cast<std::int64_t>(need.total())};
  const auto times = std::find_if(times_.begin(), times_.end(),
                                  [&](const GraphTimes& measured) { return measured.key == key; });
  if (times != times_.end()) {
    report.replay_ms = times->replay_ms;
    report.eager_ms = times->eager_ms;
    report.stored_times = times->stored;
  }
  return report;
}

void GraphManager::log_capture(const BudgetGraph& graph) const {
  if (options_.log == nullptr) return;
  const GraphReport report = report_of(graph);
  log_to(options_.log, LogLevel::kInfo,
         cat("encoder_graphs.graph path=", report.path, " budget=", report.budget,
             " ms=", report.capture_ms, " bytes=", report.recording_bytes,
             " shared_bytes=", report.shared_bytes, " replay_ms=", report.replay_ms,
             " eager_ms=", report.eager_ms, report.stored_times ? " stored" : ""));
}

void GraphManager::log_captured() const {
  log_to(options_.log, LogLevel::kInfo,
         cat("encoder_graphs.captured count=", graphs_.graphs().size(), " ms=", capture_ms_,
             " arena_bytes=", graphs_.memory().arena_bytes(), " input_bytes=",
             graphs_.memory().input_bytes(), " output_bytes=", graphs_.memory().output_bytes()));
}

void GraphManager::capture() {
  if (options_.user.cudagraph_mm_encoder) capture_all({});
}

void GraphManager::capture_all(const std::stop_token& stop) {
  std::vector<GraphKey> keys = capture_order(config_);
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(keys, [&](const GraphKey& key) { return !is_capturable(key); });
    give_up(graphs_.reserve(keys));
  }
  for (const GraphKey& key : keys) {
    if (stop.stop_requested()) break;
    const std::lock_guard lock(mutex_);
    if (is_capturable(key)) try_capture({&key, 1});
  }
  store_times();
  const std::lock_guard lock(mutex_);
  if (!stop.stop_requested()) log_captured();
}

void GraphManager::capture_in_background() {
  if (!options_.user.cudagraph_mm_encoder) return;
  is_capturing_ = true;
  background_ = std::jthread([this](const std::stop_token& stop) {
    try {
      capture_all(stop);
    } catch (const std::exception& error) {  // a thread must answer for everything
      log_to(options_.log, LogLevel::kError,
             cat("encoder_graphs.capture_failed message=", error.what()));
      background_failure_ = std::current_exception();
    }
    is_capturing_ = false;
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

void GraphManager::clear() {
  const std::lock_guard lock(mutex_);
  graphs_.clear();
  unaffordable_.clear();
}

bool GraphManager::is_captured() const {
  const std::lock_guard lock(mutex_);
  return !graphs_.graphs().empty();
}

void GraphManager::capture_for(const SubBatch& batch) {
  std::array<GraphKey, kMaxPaths> wanted{};
  std::size_t count = 0;
  for (std::size_t path = 0; path < config_.path_budgets.size(); ++path) {
    const std::optional<GraphKey> key = key_of(static_cast<PathId>(path), batch);
    if (key && is_capturable(*key)) wanted[count++] = *key;
  }
  try_capture({wanted.data(), count});
}

bool GraphManager::is_capturable(const GraphKey& key) const {
  return std::find(unaffordable_.begin(), unaffordable_.end(), key) == unaffordable_.end();
}

// --- execution ---

void GraphManager::execute(Items items, Rows out) {
  run(items, out,
      options_.user.cudagraph_mm_encoder ? std::nullopt
                                         : std::optional<MissReason>(MissReason::kDisabled));
}

void GraphManager::execute_eager(Items items, Rows out) { run(items, out, MissReason::kRequested); }

bool GraphManager::serves(const ItemPlan& plan) const {
  return fovea::serves(model_.graph_spec(), config_, plan.modality);
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
              " items need as many destinations, got ", out.size());
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
  GraphStats::PathMisses misses{};
  bool any_eager = false;
  for (std::size_t i = 0; i < num_paths; ++i) {
    const auto path = static_cast<PathId>(i);
    if (batch.load[i] == 0) continue;
    misses[i] = forced ? forced : try_replay(path, batch, outputs[i]);
    if (!misses[i]) continue;
    any_eager = true;
    outputs[i] = eager_.run(path, batch_items_);
    stats_.count_eager(path);
  }

  Arena scratch = any_eager ? eager_.arena() : graphs_.memory().arena();
  ExecContext ctx{.stream = lane_.compute(),
                  .kernels = lane_.device().kernels(),
                  .arena = scratch,
                  .side = lane_.side()};
  model_.assemble(ctx, std::span(outputs.data(), num_paths), batch_items_, batch_out_);
  stats_.count_sub_batch(batch_items_, misses);
}

std::optional<GraphKey> GraphManager::key_of(PathId path, const SubBatch& batch) const {
  const std::optional<std::int64_t> budget = batch.budgets[static_cast<std::size_t>(path)];
  if (!budget || *budget == 0 || batch.too_many_seqs) return std::nullopt;
  return GraphKey{.path = path, .budget = *budget};
}

bool GraphManager::eager_wins(const GraphKey& key, std::int64_t load) const {
  return std::any_of(times_.begin(), times_.end(), [&](const GraphTimes& times) {
    return times.key == key && eager_is_faster(times, load);
  });
}

std::optional<MissReason> GraphManager::try_replay(PathId path, const SubBatch& batch,
                                                   PathOutput& output) {
  const std::optional<GraphKey> key = key_of(path, batch);
  if (!key) return batch.too_many_seqs ? MissReason::kFrames : MissReason::kOversized;
  const BudgetGraph* const graph = graphs_.find(*key);
  if (graph == nullptr) {
    if (!is_capturing_) {
      warn_once(cat("encoder_graphs.not_captured path=", path, " budget=", key->budget));
    }
    return MissReason::kNotCaptured;
  }
  if (eager_wins(*key, batch.load[static_cast<std::size_t>(path)])) return MissReason::kSlower;
  try {
    output = graph->replay(lane_, graphs_.memory(), batch_items_, inputs_);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnavailable) throw;
    const auto overfull =
        std::find_if(inputs_.slots.begin(), inputs_.slots.end(),
                     [](const InputWriter::Slot& slot) { return slot.too_small; });
    warn_once(cat("encoder_graphs.input_too_small path=", path, " buffer=",
                  overfull == inputs_.slots.end() ? std::string("?") : overfull->decl->name));
    return MissReason::kCapacity;
  }
  stats_.count_replay(path, batch_items_, graph->capacity().tokens);
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
  graphs_.memory().poison();
}

Stats GraphManager::stats() const {
  const GraphMemoryReport bytes = memory();
  const std::lock_guard lock(mutex_);
  Stats stats = stats_.snapshot();
  stats.num_budgets = static_cast<std::int64_t>(graphs_.graphs().size());
  stats.token_budgets = config_.token_budgets;
  for (std::size_t path = 0; path < stats.paths.size(); ++path) {
    if (options_.user.cudagraph_mm_encoder) {
      stats.paths[path].token_budgets = config_.path_budgets[path];
    }
  }
  stats.capture_seconds = capture_ms_ / 1000;
  stats.graph_bytes = static_cast<std::int64_t>(bytes.graphs());
  for (const auto& graph : graphs_.graphs()) stats.graphs.push_back(report_of(*graph));
  return stats;
}

double GraphManager::packing_ms() const { return packing_ms_; }

GraphMemoryReport GraphManager::memory() const {
  const std::lock_guard lock(mutex_);
  const GraphMemory& shared = graphs_.memory();
  return {.arena = shared.arena_bytes(),
          .inputs = shared.input_bytes(),
          .outputs = shared.output_bytes(),
          .recordings = graphs_.recording_bytes(),
          .eager = eager_.device_bytes(),
          .host = shared.host_bytes()};
}

std::vector<GraphKey> GraphManager::captured_keys() const {
  const std::lock_guard lock(mutex_);
  std::vector<GraphKey> keys;
  for (const auto& graph : graphs_.graphs()) keys.push_back(graph->key());
  return keys;
}

}  // namespace fovea
