#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "fovea/tower/graph/graph_sizes.h"
#include "fovea/tower/models/encoder_graph_model.h"
#include "graph/lane.h"
#include "graph/run_memory.h"
#include "graph/sized_forward.h"

namespace fovea {

/// "path=local budget=64", for log lines.
[[nodiscard]] std::string describe(const GraphSpec& spec, const GraphKey& key);

/// One captured forward of a path at one capacity. It names memory by address, so that memory must
/// not move while the graph lives; replay checks that it has not.
class BudgetGraph {
 public:
  /// Sizes the forward; captures nothing yet.
  BudgetGraph(const EncoderGraphModel& model, const Device& device, const GraphKey& key,
              const GraphCapacity& capacity);

  [[nodiscard]] const GraphKey& key() const noexcept { return key_; }
  [[nodiscard]] const GraphCapacity& capacity() const noexcept { return forward_.capacity(); }
  [[nodiscard]] const RunMemory::Need& need() const noexcept { return forward_.need(); }
  /// Device bytes of the recording itself.
  [[nodiscard]] std::size_t recording_bytes() const noexcept {
    return recording_ ? recording_->bytes() : 0;
  }

  /// What the last capture took.
  [[nodiscard]] double capture_ms() const noexcept { return capture_ms_; }

  /// Runs the forward twice on zeroed inputs (libraries choose and load their kernels), then
  /// records it. @param memory holds need().
  void capture(Lane& lane, RunMemory& memory);

  /// Fills the inputs for `items` and submits the recorded forward. The rows stay valid until the
  /// next replay of the same path.
  /// @throws Error(kUnavailable) if an input is too small for the batch: nothing was submitted.
  /// @throws Error(kInternal) if the memory has moved since capture.
  [[nodiscard]] PathOutput replay(Lane& lane, RunMemory& memory,
                                  std::span<const PreparedItem* const> items,
                                  InputScratch& scratch) const;

 private:
  GraphKey key_;
  SizedForward forward_;
  RunMemory::Addresses captured_;  // where the recording reads and writes
  std::unique_ptr<RecordedGraph> recording_;
  double capture_ms_ = 0;
};

}  // namespace fovea
