#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "fovea/export.h"
#include "fovea/stats.h"
#include "fovea/tower/device/device.h"
#include "fovea/tower/graph/graph_sizes.h"
#include "fovea/tower/graph/manager_options.h"
#include "fovea/tower/models/encoder_graph_model.h"
#include "fovea/tower/version.h"

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

/// How the tower ran for an item, or for the share of it.
struct ItemUse {
  GraphUse graph = GraphUse::kNone;
  std::int64_t units_reused = 0;  ///< of its units, as Stats::units_reused
};

class TeamTable;  // src/graph/team_table.h: where managers meet that run an item together

/// What a run is asked for besides items and rows.
struct RunOptions {
  /// Of a device that is not the host, the queue that reads the rows next: the run writes behind
  /// what was submitted to it before, and what is submitted to it afterwards finds the rows there.
  /// The run returns when all is submitted; the host waits only for inputs of the last sub-batch
  /// but one to be uploaded, and where memory grows. Null: it returns when the rows are there.
  Stream* reader = nullptr;
  std::span<ItemUse> uses = {};            ///< of each item, written; none: nobody wants to know
  std::span<const ItemShare> shares = {};  ///< of each item; none: all are whole
  /// The item is one, and its share a TeamPart: the other parts run at the same time, each in the
  /// manager of another member, with the same table, which a caller whose run throws must leave.
  /// Null: there is no such share.
  TeamTable* team = nullptr;
};

/// Packs items into the sizes of captured graphs, replays the smallest that fits and runs the rest
/// eagerly, with equal results.
/// Thread-safe: runs of several threads take turns between two sub-batches: the run with the
/// fewest patches left is next, but none is overtaken more than eight times. Source:
/// docs/reference/encoder_graphs.md.
class FOVEA_API GraphManager {
 public:
  /// `model` and `device` must outlive the manager. Captures nothing.
  /// @throws Error(kInvalidArgument) for budgets and limits that contradict each other or the
  /// model.
  GraphManager(const EncoderGraphModel& model, Device& device, const GraphManagerOptions& options,
               TowerVersion<kTowerVersion> version = {});
  ~GraphManager();
  GraphManager(const GraphManager&) = delete;
  GraphManager& operator=(const GraphManager&) = delete;

  /// Captures every graph of the configuration that is missing, largest first. Graphs that there is
  /// no memory for are left out, the largest first, until clear(); their batches run eagerly. If
  /// the interrupt of this thread ends it, the graphs captured so far stay, and none is half made.
  void capture();
  /// As capture, on a thread of its own; meanwhile execute runs what is not captured eagerly and
  /// waits for at most one capture. Without graphs, runs the forward at some sizes instead, so that
  /// a GPU has measured its kernels when eager runs need them. Ends early when the manager is
  /// destroyed.
  void capture_in_background();
  /// Waits for the end of capture_in_background. @throws what it failed with.
  void wait_for_background();
  /// Gives back the memory that captured graphs do not need: that of eager runs, and scratch of
  /// threads that run nothing.
  void trim();
  /// Drops all graphs and gives their memory back; waits for all work.
  void clear();
  [[nodiscard]] bool is_captured() const;

  /// Encodes items of any modality, packed together. out[i] receives the rows of items[i], or of
  /// the share of it; it is device memory, [rows, out_width], activation dtype, and may be absent
  /// for an item without rows. Replays of greedily packed batches allocate nothing once batches of
  /// that size have been seen.
  /// @throws Error(kInvalidArgument) if `out` or `how` does not match `items`, Error of the model
  /// or device; Error(kCancelled) or Error(kDeadline) if the interrupt of this thread ends the run.
  /// Nothing writes to `out` any more then, and the next run gives the rows it always gives.
  RunTimes execute(std::span<const PreparedItem* const> items, std::span<const TensorView> out,
                   const RunOptions& how = {});
  /// As execute, without graphs.
  RunTimes execute_eager(std::span<const PreparedItem* const> items,
                         std::span<const TensorView> out, const RunOptions& how = {});

  /// Fills all scratch, input and output memory with NaN bits, once no run holds it. Rows computed
  /// afterwards must not change; `fovea verify` and the tests rely on it.
  /// @throws Error(kDevice).
  void fill_memory_with_nan();

  [[nodiscard]] PackingPolicy packing() const noexcept;
  /// The sizes that batches are cut by; they never change.
  [[nodiscard]] const GraphConfig& config() const noexcept;
  /// Counters since construction, and the graphs there are now. Like memory() and captured_keys(),
  /// waits for a run between two sub-batches.
  [[nodiscard]] Stats stats() const;
  /// Number of calls that wait for their turn; work in the background does not count.
  [[nodiscard]] std::size_t num_waiting() const;
  /// What the graphs and eager runs of this manager hold now, on the device but for `host`; weights
  /// and what the caller owns are not counted.
  [[nodiscard]] GraphMemoryReport memory() const;
  /// Keys of the captured graphs in order of capture.
  [[nodiscard]] std::vector<GraphKey> captured_keys() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fovea
