#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "device/device.h"
#include "fovea/stats.h"
#include "graph/batch_log.h"
#include "graph/capture/capture.h"
#include "graph/graph_config.h"
#include "graph/graph_stats.h"
#include "graph/log_once.h"
#include "graph/manager_options.h"
#include "graph/packing.h"
#include "graph/runners.h"
#include "models/encoder_graph_model.h"

namespace fovea {

/// Device memory that graphs take, in bytes.
struct GraphMemoryReport {
  std::size_t arena = 0;
  std::size_t inputs = 0;
  std::size_t outputs = 0;
  std::size_t recordings = 0;
  std::size_t eager = 0;  ///< not of graphs: what eager runs have grown to
  std::size_t host = 0;   ///< pinned host memory, 0 where device memory is host memory

  [[nodiscard]] std::size_t graphs() const { return arena + inputs + outputs + recordings; }
};

/// Packs items into the sizes of captured graphs, replays the smallest that fits and runs the rest
/// eagerly, with equal results. How graphs come about is the business of GraphCapture.
/// Thread-safe: calls are serialised. Source: docs/reference/encoder_graphs.md.
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
  /// Drops all graphs and gives their memory back; waits for all work.
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
  /// submitting their uploads. Waits for nothing.
  [[nodiscard]] double packing_ms() const noexcept { return packing_ms_; }
  [[nodiscard]] GraphMemoryReport memory() const;
  /// Keys of the captured graphs in order of capture.
  [[nodiscard]] std::vector<GraphKey> captured_keys() const;

 private:
  using Items = std::span<const PreparedItem* const>;
  using Rows = std::span<const TensorView>;
  /// Why no path of a call may be replayed; absent: its graphs decide.
  using Forced = std::optional<MissReason>;

  /// Items of a call that are packed together. Kept from call to call for its memory.
  struct Selection {
    std::vector<std::size_t> indices;        // of the items, in the call
    std::vector<ItemSpec> specs;             // of the same items
    Packing packing;                         // of the same items
    std::vector<const PreparedItem*> items;  // in the order of packing
    std::vector<TensorView> out;             // where their rows go
  };
  /// Items that run together, and where their rows go.
  struct Batch {
    const SubBatch& plan;
    Items items;
    Rows out;
  };

  void run(Items items, Rows out, Forced forced);
  void check_destinations(Items items, Rows out) const;
  /// Runs all items, those together that may share graphs.
  void submit(Items items, Rows out, Forced forced);
  void run_selection(Items items, Rows out, Forced forced, Selection& selection);
  void run_batch(const Batch& batch, Forced forced);
  /// Replays a path, or says why not.
  [[nodiscard]] std::optional<MissReason> try_replay(PathId path, const Batch& batch,
                                                     PathOutput& output);
  /// Captures what the batch would replay.
  void capture_for(const SubBatch& plan);

  const EncoderGraphModel& model_;
  const GraphManagerOptions options_;
  const GraphConfig config_;
  Runners runners_;

  // Guarded by runners_.mutex.
  GraphStats stats_;
  BatchLog batch_log_;
  LogOnce warnings_;
  Selection selection_;
  InputScratch inputs_;

  std::atomic<double> packing_ms_{0};
  GraphCapture capture_;  // last: its thread ends before what it uses
};

}  // namespace fovea
