#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <thread>
#include <vector>

#include "core/fair_mutex.h"
#include "fovea/stats.h"
#include "fovea/tower/graph/manager_options.h"
#include "fovea/tower/models/encoder_graph_model.h"
#include "graph/batch_log.h"
#include "graph/capture/budget_graph.h"
#include "graph/capture/calibration.h"
#include "graph/capture/graph_set.h"
#include "graph/eager_runner.h"
#include "graph/graph_config.h"
#include "graph/lane.h"
#include "graph/packing.h"

namespace fovea {

/// The two ways to run a batch on a lane, and the lock that guards them: batches and captures take
/// turns.
struct Runners {
  /// All three must outlive this object.
  Runners(const EncoderGraphModel& model, const GraphConfig& config, Device& device)
      : lane(device), eager(model, lane), graphs(model, config, lane) {}

  mutable FairMutex mutex;
  Lane lane;
  EagerRunner eager;
  GraphSet graphs;
};

/// Makes the graphs of a manager: makes room, captures, measures, for one batch or for all budgets,
/// on the caller's thread or in the background. Knows what the graphs are worth. Where there are to
/// be none, it rehearses eager runs instead.
class GraphCapture {
 public:
  /// All must outlive this object. Captures nothing.
  GraphCapture(const EncoderGraphModel& model, const GraphConfig& config,
               const GraphManagerOptions& options, Runners& runners);
  GraphCapture(const GraphCapture&) = delete;
  GraphCapture& operator=(const GraphCapture&) = delete;

  // --- for callers without runners.mutex, which is taken for one recording at a time ---

  /// Captures every graph of the configuration that is missing, largest first: all at their full
  /// size, then at the smaller ones. Graphs that there is no memory for are left out, the largest
  /// first, until clear().
  /// @param stop ends early, between two recordings.
  /// @throws Error(kCancelled) or Error(kDeadline) if the interrupt of this thread ends it: graphs
  /// captured so far stay.
  void capture_all(const std::stop_token& stop = {});
  /// Without graphs: rehearses every path at rehearsed_sizes(), so that eager runs of any size find
  /// kernels measured, and gives the memory back. Ends at the first size of a path that there is no
  /// memory for. @param stop as above, between two sizes.
  void rehearse_all(const std::stop_token& stop);
  /// As capture_all, or rehearse_all, on a thread of its own; ends early when this object is
  /// destroyed.
  void start_in_background();
  /// Waits for the end of that thread, which goes on if the interrupt of this one ends the wait.
  /// @throws what it failed with.
  void wait_for_background();
  [[nodiscard]] bool runs_in_background() const noexcept { return in_background_; }

  // --- for callers that hold runners.mutex ---

  /// Captures what is missing of `keys`. Without memory for it, all of them are left out from now
  /// on.
  void capture(std::span<const GraphKey> keys);
  /// Whether nothing is known that speaks against capturing it.
  [[nodiscard]] bool is_possible(const GraphKey& key) const;
  /// Drops all graphs and gives their memory back.
  void clear();

  /// Whether the graph was measured to be slower than eager execution under such a load.
  [[nodiscard]] bool eager_wins(const BudgetGraph& graph, std::int64_t load) const;
  /// Costs of sub-batches: measured ones as far as there are any.
  [[nodiscard]] const PackingCosts& costs() const noexcept { return costs_; }
  [[nodiscard]] GraphReport report_of(const BudgetGraph& graph) const;
  /// Spent on capturing and measuring so far.
  [[nodiscard]] double total_ms() const noexcept { return total_ms_; }

 private:
  class Spent;

  /// The known times of a graph, or null.
  [[nodiscard]] const GraphTimes* times_of(const BudgetGraph& graph) const;
  /// Makes room for all graphs and says which are possible. Takes the lock.
  [[nodiscard]] std::vector<GraphKey> reserve_all();
  /// Captures what is missing of `keys` at full size, as capture() does.
  /// @return the graphs captured by this call.
  std::span<const std::unique_ptr<BudgetGraph>> ensure(std::span<const GraphKey> keys);
  /// Records a graph at its next smaller size, or measures it if there is none left.
  /// @return whether to go on.
  bool advance(BudgetGraph& graph);
  [[nodiscard]] bool is_unfinished(const BudgetGraph& graph) const;
  /// Whether it recorded a smaller size: there was one, and memory for it.
  [[nodiscard]] bool records_next(BudgetGraph& graph);
  void give_up(std::span<const GraphKey> keys);
  /// Takes the lock. @return whether there was memory for it.
  bool rehearse(PathId path, const GraphCapacity& size);
  /// Measures a captured graph unless its times are known.
  void measure(const BudgetGraph& graph);
  /// Absent without items that fill the graph, or without memory for an eager run beside it: then
  /// there is no choice but to replay it.
  [[nodiscard]] std::optional<GraphTimes> time(const BudgetGraph& graph);
  [[nodiscard]] PackingCosts current_costs() const;
  /// Hands out all times if some are new. Must not be called with the lock held.
  void store_times();
  void log_capture(const BudgetGraph& graph) const;
  void log_failure(const std::exception& error) const noexcept;
  void log_captured() const;
  [[nodiscard]] double now_ms() const;

  const EncoderGraphModel& model_;
  const GraphConfig& config_;
  const GraphManagerOptions& options_;
  Runners& runners_;

  // Guarded by runners_.mutex.
  PackingCosts costs_;
  std::vector<GraphTimes> times_;       // stored or measured, of any graph
  bool has_new_times_ = false;          // among times_, since store_times()
  std::vector<GraphKey> unaffordable_;  // graphs there was no memory for
  std::vector<GraphKey> unfinished_;    // captured graphs that advance() has more to do with
  double total_ms_ = 0;
  LogOnce warnings_;

  std::atomic<bool> in_background_{false};
  std::mutex ending_;  // guards the end of background_ and what follows it
  std::condition_variable ended_;
  std::exception_ptr failure_;
  std::jthread background_;  // last: it ends before what it uses
};

}  // namespace fovea
