#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "fovea/tower/graph/manager_options.h"
#include "fovea/tower/models/encoder_graph_model.h"
#include "graph/capture/budget_graph.h"
#include "graph/eager_runner.h"
#include "graph/lane.h"
#include "graph/packing.h"
#include "graph/run_memory.h"

namespace fovea {

/// Blank images that fill a graph of this capacity as far as equal images can: as few as can fill
/// it with up to 256 tokens each, but no more than it has room for, as large as then fits. Empty
/// if no image gives the path a load it can hold. @param capacity of at least one item.
[[nodiscard]] std::vector<PreparedItem> filling_items(const EncoderGraphModel& model, PathId path,
                                                      const GraphCapacity& capacity);

/// The arguments of time_graph, which overwrites the scratch memory of all of them.
struct GraphTimer {
  const EncoderGraphModel& model;
  Lane& lane;
  RunMemory& memory;
  EagerRunner& eager;
  std::function<double()> now_ms;
};

/// Runs a captured graph and an eager forward in turns several times on filling_items, and on those
/// of its smallest recording, or of half of the only one, and takes the best times, input and wait
/// included, of eager runs also the sizing that a batch of a new size needs; of long runs one is
/// enough. Absent if no items fill the graph.
[[nodiscard]] std::optional<GraphTimes> time_graph(const GraphTimer& timer,
                                                   const BudgetGraph& graph);

/// Whether eager execution of `load` tokens is faster by more than the noise of a measurement.
/// Times are linear between the two loads measured, and constant beyond them.
[[nodiscard]] bool eager_is_faster(const GraphTimes& times, std::int64_t load) noexcept;

/// Costs for packing: measured times by load where there are any, budgets in proportion to those of
/// full loads elsewhere.
[[nodiscard]] PackingCosts measured_costs(std::span<const std::vector<std::int64_t>> path_budgets,
                                          std::span<const GraphTimes> times);

}  // namespace fovea
