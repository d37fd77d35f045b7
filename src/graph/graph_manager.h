#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/fair_mutex.h"
#include "device/device.h"
#include "fovea/options.h"
#include "fovea/stats.h"
#include "graph/calibration.h"
#include "graph/eager_runner.h"
#include "graph/graph_config.h"
#include "graph/graph_set.h"
#include "graph/graph_stats.h"
#include "graph/lane.h"
#include "graph/packing.h"
#include "models/encoder_graph_model.h"

namespace fovea {

/// When a graph that a batch could use does not exist.
enum class MissingGraph : std::uint8_t {
  kRunEager,  ///< count a miss; graphs are made by capture() alone
  kCapture,   ///< capture it there and then, growing memory as needed
};

struct GraphManagerOptions {
  GraphOptions user;
  std::int64_t max_num_batched_tokens = 8192;  ///< of the consumer's step: bounds inferred budgets
  bool video_allowed = true;
  PackingPolicy packing = PackingPolicy::kGreedy;
  MissingGraph missing = MissingGraph::kRunEager;
  /// Times every graph against an eager run after its capture: packing by cost then uses
  /// milliseconds, and a graph that is slower than eager execution is not replayed.
  bool measure = false;
  /// Of an earlier manager of the same model on the same kind of device: a graph with the path and
  /// the capacity of one of them is not measured again.
  std::vector<GraphTimes> stored_times = {};
  /// Where all times go, stored and measured, at the end of a capture() or capture_in_background()
  /// that measured any. Called on the thread that captured, while batches go on; must not throw.
  std::function<void(std::span<const GraphTimes>)> store_times = {};
  /// Milliseconds since any moment, for measuring; absent: the steady clock.
  std::function<double()> clock_ms = {};
  std::int64_t log_interval = 100;  ///< items between two log lines of counters
  LogSink* log = nullptr;           ///< must outlive the manager; null: silence
};

/// Device memory that graphs take, in bytes.
struct GraphMemoryReport {
  std::size_t arena = 0;
  std::size_t inputs = 0;
  std::size_t outputs = 0;
  std::size_t recordings = 0;
  std::size_t eager = 0;  ///< not of graphs: what eager runs have grown to
  std::size_t host = 0;   ///< page-locked host memory, 0 where device memory is host memory

  [[nodiscard]] std::size_t graphs() const { return arena + inputs + outputs + recordings; }
};

/// Captures the forward of a model at fixed sizes, packs items into those sizes, replays the
/// smallest that fits and runs the rest eagerly, with equal results.
/// Thread-safe: calls are serialised.
/// Source: docs/reference/encoder_graphs.md.
class GraphManager {
 public:
  /// `model` and `device` must outlive the manager. Captures nothing.
  /// @throws Error(kInvalidArgument) as resolve_graph_config.
  GraphManager(const EncoderGraphModel& model, Device& device, const GraphManagerOptions& options);
  GraphManager(const GraphManager&) = delete;
  GraphManager& operator=(const GraphManager&) = delete;

  /// Captures every graph of the configuration that is missing, largest first. Graphs that there is
  /// no memory for are left out, the largest first, until clear(); their batches run eagerly.
  void capture();
  /// As capture, on a thread of its own; meanwhile execute runs what is not captured eagerly and
  /// waits for at most one capture. Ends early when the manager is destroyed.
  void capture_in_background();
  /// Waits for the end of capture_in_background. @throws what it failed with.
  void wait_for_background();
  /// Drops all graphs and gives their memory back.
  void clear();
  [[nodiscard]] bool is_captured() const;

  /// Encodes items of any modality, packed together. out[i] receives the rows of items[i]; it is
  /// device memory, [out_rows, out_width], activation dtype, and may be absent for an item without
  /// rows. Returns when the rows are there. Replays of greedily packed batches allocate nothing
  /// once batches of that size have been seen.
  /// @throws Error(kInvalidArgument) if `out` does not match `items`, Error of the model or device.
  void execute(std::span<const PreparedItem* const> items, std::span<const TensorView> out);
  /// As execute, without graphs.
  void execute_eager(std::span<const PreparedItem* const> items, std::span<const TensorView> out);

  /// Overwrites all scratch, input and output memory with NaN bits. Rows computed afterwards must
  /// not change; `fovea verify` and the tests rely on it.
  void poison_memory();

  [[nodiscard]] const GraphConfig& config() const noexcept { return config_; }
  [[nodiscard]] Stats stats() const;
  /// Milliseconds that the host has spent so far in execute on packing, filling inputs and
  /// submitting their uploads.
  [[nodiscard]] double packing_ms() const;
  [[nodiscard]] GraphMemoryReport memory() const;
  /// Keys of the captured graphs in order of capture.
  [[nodiscard]] std::vector<GraphKey> captured_keys() const;

 private:
  using Items = std::span<const PreparedItem* const>;
  using Rows = std::span<const TensorView>;

  void run(Items items, Rows out, std::optional<MissReason> forced);
  /// Time of pack() and of all that the replays and eager runs so far were fed with, measuring
  /// included.
  [[nodiscard]] double host_ms() const noexcept {
    return pack_ms_ + inputs_.host_ms + eager_.host_ms();
  }
  void check_destinations(Items items, Rows out) const;
  void submit(Items items, Rows out, std::optional<MissReason> forced);
  void run_selection(Items items, Rows out, std::optional<MissReason> forced);
  void run_sub_batch(const SubBatch& batch, Items items, Rows out,
                     std::optional<MissReason> forced);
  [[nodiscard]] bool serves(const ItemPlan& plan) const;
  /// Replays a path of the sub-batch in batch_items_, or says why not.
  [[nodiscard]] std::optional<MissReason> try_replay(PathId path, const SubBatch& batch,
                                                     PathOutput& output);
  /// Key of the graph that the sub-batch in batch_items_ would replay; absent if none could be.
  [[nodiscard]] std::optional<GraphKey> key_of(PathId path, const SubBatch& batch) const;
  /// Whether the graph was measured to be slower than eager execution under such a load.
  [[nodiscard]] bool eager_wins(const GraphKey& key, std::int64_t load) const;
  /// Captures what is missing of `keys`, and measures it if asked to.
  void ensure_captured(std::span<const GraphKey> keys);
  /// As ensure_captured; gives up what there is no memory for.
  void try_capture(std::span<const GraphKey> keys);
  /// Lets batches of these graphs run eagerly from now on.
  void give_up(std::span<const GraphKey> keys);
  /// Captures what capture() promises; takes the lock for one graph at a time.
  void capture_all(const std::stop_token& stop);
  /// Takes the times of a captured graph from those known, or measures them.
  void measure(const BudgetGraph& graph);
  /// Measures. Absent without items that fill the graph, or without memory for an eager run beside
  /// it: then there is no choice but to replay it.
  [[nodiscard]] std::optional<GraphTimes> time(const BudgetGraph& graph);
  /// Hands out all times if some are new. Must not be called with the lock held.
  void store_times();
  [[nodiscard]] GraphReport report_of(const BudgetGraph& graph) const;
  void log_capture(const BudgetGraph& graph) const;
  void log_captured() const;
  [[nodiscard]] double now_ms() const;
  /// Captures what the sub-batch in batch_items_ would replay.
  void capture_for(const SubBatch& batch);
  [[nodiscard]] bool is_capturable(const GraphKey& key) const;
  void warn_once(const std::string& line);

  const EncoderGraphModel& model_;
  const GraphManagerOptions options_;
  GraphConfig config_;
  PackingLimits limits_;

  mutable FairMutex mutex_;  // guards the members below; batches go in between captures
  PackingCosts costs_;
  std::vector<GraphTimes> known_times_;  // stored or measured, of any graph
  bool has_new_times_ = false;           // among known_times_, since store_times()
  std::vector<GraphTimes> times_;        // of the graphs captured so far
  Lane lane_;
  EagerRunner eager_;
  GraphSet graphs_;
  std::vector<GraphKey> unaffordable_;  // graphs there was no memory for
  GraphStats stats_;
  double capture_ms_ = 0;
  std::atomic<double> packing_ms_{0};  // of all calls of run(); read without waiting for captures
  std::set<std::string> warned_;

  // Scratch of run(), kept so that it is not allocated again.
  std::vector<std::int64_t> selection_;  // indices of the items being packed
  std::vector<ItemSpec> specs_;          // of the selection
  Packing packing_;                      // of the selection
  double pack_ms_ = 0;                   // spent in pack() so far
  std::vector<const PreparedItem*> batch_items_;
  std::vector<TensorView> batch_out_;
  InputScratch inputs_;  // of replays

  std::atomic<bool> is_capturing_{false};  // by background_
  std::exception_ptr background_failure_;  // written by background_, read after it has ended
  std::jthread background_;                // last: it ends before what it uses
};

}  // namespace fovea
