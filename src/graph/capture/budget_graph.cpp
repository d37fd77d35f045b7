// Capture and replay of one graph.
#include "graph/capture/budget_graph.h"

#include "core/check.h"
#include "core/stopwatch.h"

namespace fovea {

std::string describe(const GraphSpec& spec, const GraphKey& key) {
  return cat("path=", spec.paths[static_cast<std::size_t>(key.path)].name, " budget=", key.budget);
}

BudgetGraph::BudgetGraph(const EncoderGraphModel& model, const Device& device, const GraphKey& key,
                         const GraphCapacity& capacity)
    : key_(key), forward_(model, device, key.path, capacity) {}

void BudgetGraph::capture(Lane& lane, RunMemory& memory) {
  FOVEA_CHECK(memory.holds(key_.path, need()), kInternal, "graph of budget ", key_.budget,
              " needs more memory than is reserved");
  const Stopwatch watch;
  const auto forward = [&] { forward_.submit(lane, memory, true); };
  lane.synchronize();
  forward_.feed_zeros(lane, memory);
  forward();
  forward();
  lane.synchronize();
  recording_ = lane.compute().capture(forward);
  captured_ = memory.addresses(key_.path);
  capture_ms_ = watch.elapsed_ms();
}

PathOutput BudgetGraph::replay(Lane& lane, RunMemory& memory,
                               std::span<const PreparedItem* const> items,
                               InputScratch& scratch) const {
  FOVEA_CHECK(recording_ != nullptr && captured_ == memory.addresses(key_.path), kInternal,
              "memory of the graph of budget ", key_.budget, " has moved since capture");
  forward_.feed(lane, memory, items, scratch);
  lane.compute().replay(*recording_);
  return forward_.output(memory, items);
}

}  // namespace fovea
