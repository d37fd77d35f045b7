#pragma once

#include "fovea/tower/device/device.h"
#include "fovea/tower/graph/graph_manager.h"
#include "fovea/tower/models/encoder_graph_model.h"

namespace fovea {

/// One device of an engine: a model on it, and its graphs. It does not know whether there are other
/// replicas. Callers run it through sessions of their own.
class Replica {
 public:
  /// `model` lives on `device`, or in host memory that the device computes in. Both must outlive
  /// the replica. Captures nothing.
  Replica(const EncoderGraphModel& model, Device& device, const GraphManagerOptions& options)
      : model_(model), device_(device), graphs_(model, device, options) {}

  [[nodiscard]] const EncoderGraphModel& model() const noexcept { return model_; }
  [[nodiscard]] Device& device() const noexcept { return device_; }
  [[nodiscard]] GraphManager& graphs() noexcept { return graphs_; }
  [[nodiscard]] const GraphManager& graphs() const noexcept { return graphs_; }

 private:
  const EncoderGraphModel& model_;
  Device& device_;
  GraphManager graphs_;
};

}  // namespace fovea
