#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "core/fair_mutex.h"
#include "core/spares.h"
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

/// What a run took besides the tower, in milliseconds.
struct RunTimes {
  double packing_ms = 0;  ///< of the host: packing, filling inputs and submitting their uploads
  double waiting_ms = 0;  ///< for the runs of other threads
};

/// Packs items into the sizes of captured graphs, replays the smallest that fits and runs the rest
/// eagerly, with equal results. How graphs come about is the business of GraphCapture.
/// Thread-safe: runs of several threads take turns between two sub-batches, by FairMutex: the run
/// with the fewest patches left is next. Source: docs/reference/encoder_graphs.md.
class GraphManager {
 public:
  /// `model` and `device` must outlive the manager. Captures nothing.
  /// @throws Error(kInvalidArgument) as resolve_graph_config.
  GraphManager(const EncoderGraphModel& model, Device& device, const GraphManagerOptions& options);
  GraphManager(const GraphManager&) = delete;
  GraphManager& operator=(const GraphManager&) = delete;

  /// Captures every graph of the configuration that is missing, largest first. Graphs that there is
  /// no memory for are left out, the largest first, until clear(); their batches run eagerly. If
  /// the interrupt of this thread ends it, the graphs captured so far stay, and none is half made.
  void capture();
  /// As capture, on a thread of its own; meanwhile execute runs what is not captured eagerly and
  /// waits for at most one capture. Ends early when the manager is destroyed.
  void capture_in_background();
  /// Waits for the end of capture_in_background. @throws what it failed with.
  void wait_for_background();
  /// Gives back the memory that captured graphs do not need: that of eager runs, and scratch of
  /// threads that run nothing.
  void trim();
  /// Drops all graphs and gives their memory back; waits for all work.
  void clear();
  [[nodiscard]] bool is_captured() const;

  /// Encodes items of any modality, packed together. out[i] receives the rows of items[i]; it is
  /// device memory, [out_rows, out_width], activation dtype, and may be absent for an item without
  /// rows. Returns when the rows are there. Replays of greedily packed batches allocate nothing
  /// once batches of that size have been seen.
  /// @throws Error(kInvalidArgument) if `out` does not match `items`, Error of the model or device;
  /// Error(kCancelled) or Error(kDeadline) if the interrupt of this thread ends the run. Nothing
  /// writes to `out` any more then, and the next run gives the rows it always gives.
  /// @param reader of a device that is not the host, the queue that reads `out` next: the run
  /// writes to `out` behind what was submitted to it before, and what is submitted to it afterwards
  /// finds the rows there. Returns when all is submitted; the host waits only for inputs of
  /// the last sub-batch but one to be uploaded, and where memory grows. Null: as above.
  RunTimes execute(std::span<const PreparedItem* const> items, std::span<const TensorView> out,
                   Stream* reader = nullptr);
  /// As execute, without graphs.
  RunTimes execute_eager(std::span<const PreparedItem* const> items,
                         std::span<const TensorView> out, Stream* reader = nullptr);

  /// Overwrites all scratch, input and output memory with NaN bits. Rows computed afterwards must
  /// not change; `fovea verify` and the tests rely on it.
  void poison_memory();

  [[nodiscard]] const GraphConfig& config() const noexcept { return config_; }
  [[nodiscard]] Stats stats() const;
  /// Number of threads that wait for their turn.
  [[nodiscard]] std::size_t num_waiting() const { return runners_.mutex.num_waiting(); }
  [[nodiscard]] GraphMemoryReport memory() const;
  /// Keys of the captured graphs in order of capture.
  [[nodiscard]] std::vector<GraphKey> captured_keys() const;

 private:
  using Items = std::span<const PreparedItem* const>;
  using Rows = std::span<const TensorView>;
  /// Why no path of a call may be replayed; absent: its graphs decide.
  using Forced = std::optional<MissReason>;

  /// Items of a run that are packed together.
  struct Selection {
    std::vector<std::size_t> indices;        // of the items, in the run
    std::vector<ItemSpec> specs;             // of the same items
    Packing packing;                         // of the same items
    std::vector<const PreparedItem*> items;  // in the order of packing
    std::vector<TensorView> out;             // where their rows go
  };
  /// What a run works with, from run to run for its memory.
  struct Scratch {
    Selection selection;
    InputScratch inputs;
  };
  /// A run, and the lock of the runners, which it holds except where it gives way.
  struct Run {
    Items items;
    Rows out;
    Scratch& scratch;
    std::int64_t patches_left = 0;
    std::unique_lock<FairMutex> turn = {};
    RunTimes times = {};
  };
  /// Items that run together, and where their rows go.
  struct Batch {
    const SubBatch& plan;
    Items items;
    Rows out;
    InputScratch& inputs;
  };

  RunTimes run(Items items, Rows out, Forced forced, Stream* reader);
  void check_destinations(Items items, Rows out) const;
  /// Runs all items, those together that may share graphs.
  void submit(Run& run, Forced forced);
  void run_selection(Run& run, Forced forced);
  /// Waits for the turn of a run, also if it has one and others are next.
  void take_turn(Run& run);
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

  Spares<Scratch> scratch_;
  GraphCapture capture_;  // last: its thread ends before what it uses
};

}  // namespace fovea
