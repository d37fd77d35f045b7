#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"
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

  /// As run; then fills in what the tower knows about the results: rows, width and dtype of
  /// *out[i], its data in memory of its own, and its share of the times of the batch.
  void encode(std::span<const PreparedItem* const> items, const EncodeOptions& how,
              std::span<Embedding* const> out);

  [[nodiscard]] const EncoderGraphModel& model() const noexcept { return model_; }
  [[nodiscard]] Device& device() const noexcept { return device_; }
  [[nodiscard]] GraphManager& graphs() noexcept { return graphs_; }
  [[nodiscard]] const GraphManager& graphs() const noexcept { return graphs_; }

 private:
  [[nodiscard]] std::vector<ConstTensorView> rows_on_host();

  const EncoderGraphModel& model_;
  Device& device_;
  std::unique_ptr<Stream> stream_;  // rows on their way to the host
  Buffer row_memory_;               // device; grows to the largest batch
  Buffer host_memory_;              // pinned, only where the device does not compute in host memory
  std::vector<TensorView> rows_;    // in row_memory_, of the last run
  GraphManager graphs_;
};

}  // namespace fovea
