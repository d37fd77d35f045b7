#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"
#include "engine/row_download.h"
#include "fovea/embedding.h"
#include "fovea/engine.h"
#include "graph/graph_manager.h"
#include "models/encoder_graph_model.h"

namespace fovea {

/// One device of an engine: the graphs of a model on it, and memory for the rows of a batch. It
/// does not know whether there are other replicas. One thread at a time may run it.
class Replica {
 public:
  /// `model` lives on `device`, or in host memory that the device computes in. Both must outlive
  /// the replica. Captures nothing.
  Replica(const EncoderGraphModel& model, Device& device, const GraphManagerOptions& options);

  /// Runs the tower on prepared items. The rows of items[i] are device memory, valid until the next
  /// run.
  /// @throws Error of the model or the device; the replica is usable afterwards.
  [[nodiscard]] std::span<const TensorView> run(std::span<const PreparedItem* const> items,
                                                const EncodeOptions& how);

  /// As run; then starts to fill in what the tower knows about the results: rows, width and dtype
  /// of *out[i], its data in memory of its own, and its share of the times of the batch. They are
  /// there after finish(), and so are those begun before; until then what `out` refers to must
  /// stay, also if this call throws. The next call may be a begin: its tower runs while these rows
  /// leave.
  void begin(std::span<const PreparedItem* const> items, const EncodeOptions& how,
             std::span<Embedding* const> out);
  /// Returns when nothing that begin has started is in flight.
  /// @throws Error of the device, Error(kOutOfMemory).
  void finish() { download_.finish(); }

  [[nodiscard]] const EncoderGraphModel& model() const noexcept { return model_; }
  [[nodiscard]] Device& device() const noexcept { return device_; }
  [[nodiscard]] GraphManager& graphs() noexcept { return graphs_; }
  [[nodiscard]] const GraphManager& graphs() const noexcept { return graphs_; }

 private:
  const EncoderGraphModel& model_;
  Device& device_;
  std::array<Buffer, 2> row_memory_;  // device; each grows to the largest batch
  std::size_t slot_ = 0;              // of the next run: rows may be leaving the other
  std::vector<TensorView> rows_;      // of the last run
  GraphManager graphs_;
  RowDownload download_;  // last: it ends before what it reads
};

}  // namespace fovea
