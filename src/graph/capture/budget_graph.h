#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fovea/tower/graph/graph_sizes.h"
#include "fovea/tower/models/encoder_graph_model.h"
#include "graph/lane.h"
#include "graph/run_memory.h"
#include "graph/sized_forward.h"

namespace fovea {

/// "path=local budget=64", for log lines.
[[nodiscard]] std::string describe(const GraphSpec& spec, const GraphKey& key);

/// The captured forward of a path for one budget: recorded at the capacity of the budget and, where
/// kernels are chosen for the size of what is recorded, at parts of it, so that a batch that fills
/// the budget in part runs with kernels for about its own size. Recordings name memory by address,
/// so that memory must not move while the graph lives; replay checks that it has not.
class BudgetGraph {
 public:
  /// Sizes the forwards; captures nothing yet.
  /// @param sizes ascending, not empty; the last is the capacity of the graph.
  BudgetGraph(const EncoderGraphModel& model, const Device& device, const GraphKey& key,
              std::span<const GraphCapacity> sizes);

  [[nodiscard]] const GraphKey& key() const noexcept { return key_; }
  [[nodiscard]] const GraphCapacity& capacity() const noexcept {
    return recorded_.back().forward.capacity();
  }
  /// The smallest size at which it is recorded.
  [[nodiscard]] const GraphCapacity& smallest() const noexcept {
    return recorded_.front().forward.capacity();
  }
  /// The need of the size that needs most.
  [[nodiscard]] const RunMemory::Need& need() const noexcept { return need_; }
  /// Device bytes of the recordings themselves.
  [[nodiscard]] std::size_t recording_bytes() const noexcept;

  /// Whether all sizes are recorded.
  [[nodiscard]] bool is_complete() const noexcept;
  /// The time of the last capture, with the recordings of smaller sizes since then.
  [[nodiscard]] double capture_ms() const noexcept { return capture_ms_; }

  /// Runs the forward at the largest size twice on zeroed inputs (libraries choose and load their
  /// kernels), then records it. Drops earlier recordings. @param memory holds need().
  void capture(Lane& lane, RunMemory& memory);
  /// Records the next smaller size likewise. @param memory as capture() had it.
  /// @return false if there is none left.
  bool record_next(Lane& lane, RunMemory& memory);

  /// Fills the inputs for parts of the path and submits the forward recorded at the smallest size
  /// that has room for them. The rows, as SizedForward::output, stay valid until the next replay of
  /// the same path.
  /// @throws Error(kUnavailable) if an input is too small for the batch: nothing was submitted.
  /// @throws Error(kInternal) if the memory has moved since capture.
  [[nodiscard]] TensorView replay(Lane& lane, RunMemory& memory, std::span<const ItemPart> parts,
                                  InputScratch& scratch) const;

 private:
  struct Recorded {
    SizedForward forward;
    std::unique_ptr<RecordedGraph> recording = {};
  };
  void record(Recorded& recorded, Lane& lane, RunMemory& memory);
  /// Fills the inputs of the smallest size that has room for the parts.
  [[nodiscard]] const Recorded& feed(Lane& lane, RunMemory& memory, std::span<const ItemPart> parts,
                                     InputScratch& scratch) const;

  GraphKey key_;
  std::vector<Recorded> recorded_;  // by size, ascending; only the last if there was no time yet
  RunMemory::Need need_;
  RunMemory::Addresses captured_;  // where the recordings read and write
  double capture_ms_ = 0;
};

}  // namespace fovea
