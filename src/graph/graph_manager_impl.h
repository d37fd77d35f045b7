#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "core/fair_mutex.h"
#include "core/spares.h"
#include "fovea/tower/graph/graph_manager.h"
#include "graph/batch_log.h"
#include "graph/capture/capture.h"
#include "graph/graph_config.h"
#include "graph/graph_stats.h"
#include "graph/packing.h"
#include "graph/unit_reuse.h"

namespace fovea {

/// The parts of a manager. Private to this room.
struct GraphManager::Impl {
  Impl(const EncoderGraphModel& encoder, Device& device, const GraphManagerOptions& choices);

  using Items = std::span<const PreparedItem* const>;
  using Rows = std::span<const TensorView>;
  /// Why no path of a call may be replayed; absent: its graphs decide.
  using Forced = std::optional<MissReason>;

  /// An item on its way: how the units that have run so far did.
  struct Progress {
    GraphStats::ItemRuns runs;
    std::int64_t to_come = 0;  // entries of the packing, and copies of units
  };
  /// Items of a run that are packed together.
  struct Selection {
    std::vector<std::size_t> indices;        // of the items, in the run
    std::vector<const PreparedItem*> items;  // the same
    std::vector<ItemShare> shares;           // of the same items, or none
    UnitReuse reuse;                         // among the same items
    std::vector<ItemSpec> specs;             // of the same items, without copies
    std::vector<Progress> progress;          // of the same items
    Packing packing;                         // of the same items
    std::vector<ItemPart> parts;             // of the path that runs
    std::vector<std::size_t> places;         // of their items, in `items`
    std::vector<TensorView> out;             // the rows of their items
  };
  /// The memory of a run, kept from run to run.
  struct Scratch {
    Selection selection;
    InputScratch inputs;
  };
  /// A run, and the lock of the runners, which it holds except where it gives way.
  struct Run {
    Items items;
    Rows out;
    const RunOptions& how;
    Scratch& scratch;
    std::int64_t patches_left = 0;
    std::unique_lock<FairMutex> turn = {};
    RunTimes times = {};
  };

  RunTimes run(Items items, Rows out, Forced forced, const RunOptions& how);
  void check_request(Items items, Rows out, const RunOptions& how) const;
  /// Runs all items, those together that may share graphs.
  void submit(Run& run, Forced forced);
  void run_selection(Run& run, Forced forced);
  /// Runs the part of an item that this member of a team computes.
  void run_in_team(Run& run);
  /// Lets the compute queue wait for the callers' queues that write pixels of items.
  void wait_for_pixels(Items items);
  /// Waits for the turn of a run, also if it has one and others are next.
  void take_turn(Run& run);
  void run_batch(Run& run, const SubBatch& plan, Forced forced);
  /// Runs the parts of a path that are in the selection, and puts their rows to their places.
  /// @return why they ran eagerly; absent: they were replayed.
  std::optional<MissReason> run_path(Run& run, const SubBatch& plan, PathId path, Forced forced);
  /// Replays them, or says why not.
  [[nodiscard]] std::optional<MissReason> try_replay(Run& run, const SubBatch& plan, PathId path,
                                                     TensorView& rows);
  /// Looks for units that are copies of others, and tells what is left to run of each item.
  void find_copies(Run& run);
  /// Collects what a sub-batch takes of a path.
  static void collect_parts(Run& run, const SubBatch& plan, PathId path);
  /// Where the rows of an item go, as EncoderGraphModel::assemble takes them.
  [[nodiscard]] static TensorView rows_of(const Run& run, std::size_t place);
  /// Puts rows of the parts to the places of copies, too. @param miss as run_path returns it.
  void assemble_copies(Run& run, ExecContext& ctx, PathId path, const TensorView& rows,
                       std::optional<MissReason> miss);
  /// Some of an item has run. When all of it has, it is counted.
  void advance(Run& run, std::size_t place);
  /// Captures what the batch would replay.
  void capture_for(const SubBatch& plan);

  const EncoderGraphModel& model;
  const GraphManagerOptions options;
  const GraphConfig config;
  const PackingCosts cost_of_loads;  // of runs that compute no padding
  Runners runners;

  // Guarded by runners.mutex.
  GraphStats stats;
  BatchLog batch_log;
  LogOnce warnings;

  Spares<Scratch> scratches;
  GraphCapture capture;  // last: its thread ends before what it uses
};

}  // namespace fovea
