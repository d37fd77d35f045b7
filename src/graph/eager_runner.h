#pragma once

#include <optional>
#include <span>
#include <vector>

#include "device/recent_need.h"
#include "fovea/tower/models/encoder_graph_model.h"
#include "graph/lane.h"
#include "graph/run_memory.h"
#include "graph/sized_forward.h"
#include "graph/team_table.h"

namespace fovea {

/// Runs forwards kernel by kernel at the exact size of the batch, in memory that grows on demand
/// and is kept while sub-batches need it. Not thread-safe.
class EagerRunner {
 public:
  /// Both must outlive the runner.
  EagerRunner(const EncoderGraphModel& model, Lane& lane);

  /// Submits the forward of one path for parts of it. The rows, as SizedForward::output, stay valid
  /// until the next run of the same path.
  /// @throws Error(kOutOfMemory), Error of the model: nothing was submitted, and the runner is
  /// usable.
  [[nodiscard]] TensorView run(PathId path, std::span<const ItemPart> parts, InputScratch& scratch);

  /// The same for the part of a unit that this member of a team computes: joins the others when
  /// nothing is left to do but submit.
  /// @throws as run; Error(kUnavailable) if another member cannot go on.
  [[nodiscard]] TensorView run_in_team(PathId path, const ItemPart& part, TeamTable& table,
                                       InputScratch& scratch);

  /// Runs the forward of one path on zeros, as before a recording, so that a device measures what
  /// it has for this size and those near it. Returns when it is done.
  /// @throws Error(kOutOfMemory), Error of the model: the runner is usable.
  void rehearse(PathId path, const GraphCapacity& capacity);

  /// To be called after every sub-batch, whether it ran eagerly or not. Gives all memory back if
  /// the last 32 sub-batches have needed less than half of it.
  void give_back_idle_memory();
  /// Lets the next run of every path be sized anew, as one of a new size is; keeps the memory.
  void forget_sizes() noexcept;
  /// Gives all memory back; waits for all work.
  void clear();
  [[nodiscard]] RunMemory& memory() noexcept { return memory_; }
  [[nodiscard]] const RunMemory& memory() const noexcept { return memory_; }

 private:
  /// The forward of a path at this capacity, with memory for it.
  [[nodiscard]] const SizedForward& prepare(PathId path, const GraphCapacity& capacity);

  const EncoderGraphModel& model_;
  Lane& lane_;
  RunMemory memory_;
  RecentNeed recent_;                                  // of sub-batches
  std::size_t needed_ = 0;                             // of the sub-batch that runs: all its paths
  std::vector<std::optional<SizedForward>> forwards_;  // of the last run of each path
};

}  // namespace fovea
