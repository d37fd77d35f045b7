#pragma once

#include <memory>
#include <span>
#include <vector>

#include "graph/capture/budget_graph.h"
#include "graph/graph_config.h"
#include "graph/lane.h"
#include "graph/run_memory.h"

namespace fovea {

/// Keys of all graphs in order of capture: paths as declared, budgets from large to small.
[[nodiscard]] std::vector<GraphKey> capture_order(const GraphConfig& config);

/// The sizes that the graph of a key has: whole units of its path, and room for as many items and
/// sequences as can have a token each.
[[nodiscard]] GraphCapacity graph_capacity(const GraphSpec& spec, const GraphConfig& config,
                                           const GraphKey& key);

/// The sizes at which that graph is recorded on a device, ascending; the last is graph_capacity().
/// Kernels of a GPU are chosen for the size of what is recorded, so there is one for every eighth
/// of the budget, above the next smaller budget of the path. On a CPU, whose kernels stop at the
/// last live row, there is no other.
[[nodiscard]] std::vector<GraphCapacity> recorded_sizes(const GraphSpec& spec,
                                                        const GraphConfig& config,
                                                        const GraphKey& key, const Device& device);

/// The sizes at which a path is rehearsed where there are no graphs, ascending: budgets as they
/// would be inferred, and the middle between two. Eager runs of other sizes use the kernels that
/// were measured at the nearest of these.
[[nodiscard]] std::vector<GraphCapacity> rehearsed_sizes(const GraphSpec& spec,
                                                         const GraphConfig& config, PathId path);

/// The graphs that exist and the memory they share. A graph in the set is always recorded over that
/// memory as it is now: when memory has to grow, the graphs of the old one are recorded anew.
/// Not thread-safe.
class GraphSet {
 public:
  using Graphs = std::vector<std::unique_ptr<BudgetGraph>>;

  /// All three must outlive the set.
  GraphSet(const EncoderGraphModel& model, const GraphConfig& config, Lane& lane)
      : model_(model),
        config_(config),
        lane_(lane),
        memory_(lane, model.graph_spec().paths.size()) {}

  /// The graph of a key, or null.
  [[nodiscard]] BudgetGraph* find(const GraphKey& key) const;
  /// Captures what is missing of `keys`, in that order.
  /// @return the graphs captured by this call.
  /// @throws Error(kOutOfMemory): the graphs of the old memory, if it had to move, have left the
  /// set. Error(kCancelled) or Error(kDeadline) of the thread's interrupt, as Error of the model:
  /// of those, the ones that were not recorded anew.
  std::span<const std::unique_ptr<BudgetGraph>> ensure(std::span<const GraphKey> keys);
  /// Makes room for what is missing of `keys`, so that capturing it later moves nothing. Graphs of
  /// the old memory, if it has to move, leave the set.
  /// @return keys that there is no room for: the largest, as few as leave room for all others.
  [[nodiscard]] std::vector<GraphKey> reserve(std::span<const GraphKey> keys);
  /// Drops all graphs and gives the memory back.
  void clear();

  [[nodiscard]] const Graphs& graphs() const noexcept { return graphs_; }  ///< in order of capture
  [[nodiscard]] RunMemory& memory() noexcept { return memory_; }
  [[nodiscard]] const RunMemory& memory() const noexcept { return memory_; }
  [[nodiscard]] std::size_t recording_bytes() const noexcept;

 private:
  [[nodiscard]] Graphs make_missing(std::span<const GraphKey> keys) const;
  /// Makes room for all of `graphs` at once. If memory has to move, all graphs of the set join
  /// them; if there is not enough of it, none is left.
  void make_room(Graphs& graphs);

  const EncoderGraphModel& model_;
  const GraphConfig& config_;
  Lane& lane_;
  RunMemory memory_;
  Graphs graphs_;
};

}  // namespace fovea
