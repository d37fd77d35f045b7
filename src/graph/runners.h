#pragma once

#include "core/fair_mutex.h"
#include "fovea/tower/models/encoder_graph_model.h"
#include "graph/capture/graph_set.h"
#include "graph/eager_runner.h"
#include "graph/graph_config.h"
#include "graph/lane.h"

namespace fovea {

/// The two ways to run a batch on a lane, and the lock that guards them: batches and captures take
/// turns.
struct Runners {
  /// All three must outlive this object.
  Runners(const EncoderGraphModel& model, const GraphConfig& config, Device& device)
      : lane(device), eager(model, lane), graphs(model, config, lane) {}

  mutable FairMutex mutex;
  Lane lane;
  EagerRunner eager;
  GraphSet graphs;
};

}  // namespace fovea
