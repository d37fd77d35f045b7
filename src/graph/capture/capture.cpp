// How graphs come about. A GPU captures in the background while batches run eagerly, a CPU when a
// batch first needs a graph.
#include "graph/capture/capture.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "core/blocked_signals.h"
#include "core/check.h"
#include "core/interrupt.h"
#include "fovea/log.h"

namespace fovea {

/// Adds the time until its end to what captures have taken.
class GraphCapture::Spent {
 public:
  explicit Spent(GraphCapture& capture) : capture_(capture), start_ms_(capture.now_ms()) {}
  ~Spent() { capture_.total_ms_ += capture_.now_ms() - start_ms_; }
  Spent(const Spent&) = delete;
  Spent& operator=(const Spent&) = delete;

 private:
  GraphCapture& capture_;
  double start_ms_;
};

GraphCapture::GraphCapture(const EncoderGraphModel& model, const GraphConfig& config,
                           const GraphManagerOptions& options, Runners& runners)
    : model_(model),
      config_(config),
      options_(options),
      runners_(runners),
      costs_(PackingCosts::from_budgets(config.path_budgets)),
      times_(options.measure ? options.stored_times : std::vector<GraphTimes>{}),
      warnings_(options.log) {
  for (GraphTimes& times : times_) times.stored = true;
}

// --- all graphs ---

void GraphCapture::capture_all(const std::stop_token& stop) {
  const std::vector<GraphKey> keys = reserve_all();
  for (const GraphKey& key : keys) {
    if (stop.stop_requested()) break;
    const std::lock_guard lock(runners_.mutex);
    if (!is_possible(key)) continue;
    for (const auto& graph : ensure({&key, 1})) {
      if (graph->is_complete()) (void)advance(*graph);
    }
  }
  for (const GraphKey& key : keys) {
    for (bool goes_on = true; goes_on && !stop.stop_requested();) {
      const std::lock_guard lock(runners_.mutex);
      BudgetGraph* const graph = runners_.graphs.find(key);
      goes_on = graph != nullptr && is_unfinished(*graph) && advance(*graph);
    }
  }
  store_times();
  const std::lock_guard lock(runners_.mutex);
  if (!stop.stop_requested()) log_captured();
}

std::vector<GraphKey> GraphCapture::reserve_all() {
  const std::lock_guard lock(runners_.mutex);
  std::vector<GraphKey> keys = capture_order(config_);
  std::erase_if(keys, [&](const GraphKey& key) { return !is_possible(key); });
  give_up(runners_.graphs.reserve(keys));
  return keys;
}

void GraphCapture::rehearse_all(const std::stop_token& stop) {
  const double start_ms = now_ms();
  std::int64_t count = 0;
  for (std::size_t path = 0; path < config_.path_budgets.size(); ++path) {
    const auto id = static_cast<PathId>(path);
    for (const GraphCapacity& size : rehearsed_sizes(model_.graph_spec(), config_, id)) {
      if (stop.stop_requested() || !rehearse(id, size)) break;
      ++count;
    }
  }
  const std::lock_guard lock(runners_.mutex);
  runners_.eager.clear();
  if (stop.stop_requested()) return;
  log_to(options_.log, LogLevel::kInfo,
         cat("eager_runs.rehearsed sizes=", count, " ms=", now_ms() - start_ms));
}

bool GraphCapture::rehearse(PathId path, const GraphCapacity& size) {
  const std::lock_guard lock(runners_.mutex);
  try {
    runners_.eager.rehearse(path, size);
    return true;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kOutOfMemory) throw;
    return false;  // the choices for smaller sizes serve larger ones, too
  }
}

void GraphCapture::start_in_background() {
  in_background_ = true;
  const BlockedSignals none;
  background_ = std::jthread([this](const std::stop_token& stop) {
    std::exception_ptr failure;
    try {
      options_.user.cudagraph_mm_encoder ? capture_all(stop) : rehearse_all(stop);
    } catch (const std::exception& error) {  // a thread must answer for everything
      failure = std::current_exception();
      log_failure(error);
    }
    {
      const std::lock_guard lock(ending_);
      failure_ = failure;
      in_background_ = false;
    }
    ended_.notify_all();
  });
}

void GraphCapture::wait_for_background() {
  std::unique_lock lock(ending_);
  wait_under_interrupt(ended_, lock, [&] { return !in_background_; });
  if (background_.joinable()) background_.join();
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

// --- some graphs ---

void GraphCapture::capture(std::span<const GraphKey> keys) {
  for (const auto& graph : ensure(keys)) {
    while (advance(*graph)) {
    }
  }
}

std::span<const std::unique_ptr<BudgetGraph>> GraphCapture::ensure(std::span<const GraphKey> keys) {
  const auto exists = [&](const GraphKey& key) { return runners_.graphs.find(key) != nullptr; };
  if (std::ranges::all_of(keys, exists)) return {};
  const Spent spent(*this);
  try {
    const auto captured = runners_.graphs.ensure(keys);
    for (const auto& graph : captured) unfinished_.push_back(graph->key());
    return captured;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kOutOfMemory) throw;
    give_up(keys);
    return {};
  }
}

bool GraphCapture::advance(BudgetGraph& graph) {
  const Spent spent(*this);
  if (records_next(graph)) return true;
  if (options_.measure) {
    measure(graph);
    costs_ = current_costs();
  }
  std::erase(unfinished_, graph.key());
  log_capture(graph);
  return false;
}

bool GraphCapture::is_unfinished(const BudgetGraph& graph) const {
  return std::ranges::find(unfinished_, graph.key()) != unfinished_.end();
}

bool GraphCapture::records_next(BudgetGraph& graph) {
  try {
    return graph.record_next(runners_.lane, runners_.graphs.memory());
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kOutOfMemory) throw;
    return false;  // larger recordings serve smaller batches, too
  }
}

bool GraphCapture::is_possible(const GraphKey& key) const {
  return std::ranges::find(unaffordable_, key) == unaffordable_.end();
}

void GraphCapture::give_up(std::span<const GraphKey> keys) {
  // Asking again would drop all others each time.
  unaffordable_.insert(unaffordable_.end(), keys.begin(), keys.end());
  for (const GraphKey& key : keys) {
    warnings_.warn("encoder_graphs.no_memory " + describe(model_.graph_spec(), key));
  }
}

void GraphCapture::clear() {
  runners_.graphs.clear();
  unaffordable_.clear();
  unfinished_.clear();
}

// --- times ---

const GraphTimes* GraphCapture::times_of(const BudgetGraph& graph) const {
  const auto found = std::ranges::find_if(times_, [&](const GraphTimes& times) {
    return times.key.path == graph.key().path && times.capacity == graph.capacity();
  });
  return found == times_.end() ? nullptr : &*found;
}

void GraphCapture::measure(const BudgetGraph& graph) {
  if (times_of(graph) != nullptr) return;
  const InterruptScope to_the_end(nullptr);  // which is near
  const std::optional<GraphTimes> times = time(graph);
  runners_.eager.clear();  // had grown to the size of the graph
  if (!times) return;
  times_.push_back(*times);
  has_new_times_ = true;
}

std::optional<GraphTimes> GraphCapture::time(const BudgetGraph& graph) {
  try {
    return time_graph({.model = model_,
                       .lane = runners_.lane,
                       .memory = runners_.graphs.memory(),
                       .eager = runners_.eager,
                       .now_ms = [this] { return now_ms(); }},
                      graph);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kOutOfMemory) throw;
    warnings_.warn("encoder_graphs.not_measured " + describe(model_.graph_spec(), graph.key()));
    return std::nullopt;
  }
}

PackingCosts GraphCapture::current_costs() const {
  std::vector<GraphTimes> times;
  for (const auto& graph : runners_.graphs.graphs()) {
    const GraphTimes* const known = times_of(*graph);
    if (known == nullptr) continue;
    times.push_back(*known);
    times.back().key = graph->key();  // several budgets may round to one capacity
  }
  return measured_costs(config_.path_budgets, times);
}

bool GraphCapture::eager_wins(const BudgetGraph& graph, std::int64_t load) const {
  const GraphTimes* const times = times_of(graph);
  return times != nullptr && eager_is_faster(*times, load);
}

void GraphCapture::store_times() {
  std::vector<GraphTimes> times;
  {
    const std::lock_guard lock(runners_.mutex);
    if (!options_.store_times || !std::exchange(has_new_times_, false)) return;
    times = times_;
  }
  options_.store_times(times);
}

double GraphCapture::now_ms() const {
  if (options_.clock_ms) return options_.clock_ms();
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(now).count();
}

// --- reports ---

GraphReport GraphCapture::report_of(const BudgetGraph& graph) const {
  const GraphKey& key = graph.key();
  GraphReport report{.path = model_.graph_spec().paths[static_cast<std::size_t>(key.path)].name,
                     .budget = key.budget,
                     .capture_ms = graph.capture_ms(),
                     .recording_bytes = static_cast<std::int64_t>(graph.recording_bytes()),
                     .shared_bytes = static_cast<std::int64_t>(graph.need().total())};
  if (const GraphTimes* const times = times_of(graph); times != nullptr) {
    report.replay_ms = times->replay_ms;
    report.eager_ms = times->eager_ms;
    report.stored_times = times->stored;
  }
  return report;
}

void GraphCapture::log_capture(const BudgetGraph& graph) const {
  if (!is_wanted(options_.log, LogLevel::kInfo)) return;
  const GraphReport report = report_of(graph);
  log_to(options_.log, LogLevel::kInfo,
         cat("encoder_graphs.graph path=", report.path, " budget=", report.budget,
             " ms=", report.capture_ms, " bytes=", report.recording_bytes,
             " shared_bytes=", report.shared_bytes, " replay_ms=", report.replay_ms,
             " eager_ms=", report.eager_ms, report.stored_times ? " stored" : ""));
}

void GraphCapture::log_failure(const std::exception& error) const noexcept {
  try {
    log_to(options_.log, LogLevel::kError,
           cat("encoder_graphs.capture_failed message=", error.what()));
  } catch (const std::bad_alloc&) {  // NOLINT: wait_for_background() throws the error
  }
}

void GraphCapture::log_captured() const {
  const RunMemory& memory = runners_.graphs.memory();
  log_to(options_.log, LogLevel::kInfo,
         cat("encoder_graphs.captured count=", runners_.graphs.graphs().size(), " ms=", total_ms_,
             " arena_bytes=", memory.arena_bytes(), " input_bytes=", memory.input_bytes(),
             " output_bytes=", memory.output_bytes()));
}

}  // namespace fovea
