#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fovea/options.h"
#include "fovea/tower/models/encoder_graph_model.h"
#include "graph/graph_config.h"

namespace fovea {

/// One value per path.
using PathTokens = std::array<std::int64_t, kMaxPaths>;

/// The bounds of a sub-batch.
struct PackingLimits {
  std::span<const std::vector<std::int64_t>> path_budgets;  ///< of GraphConfig
  std::int64_t max_items = 1;
  /// Most attention sequences beside a video, i.e. beside an item of several: images count one
  /// each. Images alone are limited by max_items.
  std::int64_t max_frames = 1;
};

/// The limits that follow from the sizes of the graphs. @param config must outlive the result.
/// @param replayed false: of items that run eagerly whatever their size. Videos are then limited by
/// config.max_seqs, as graphs that take none leave them without a limit of their own.
[[nodiscard]] PackingLimits limits_of(const GraphConfig& config, bool replayed = true) noexcept;

/// An item in a sub-batch, or some of its units on one path.
struct PackedItem {
  std::int64_t item = 0;            ///< its index
  std::optional<PathId> path = {};  ///< absent: the whole item, on all its paths
  std::int64_t first_unit = 0;      ///< on the path; 0 for a whole item
  std::int64_t units = 0;           ///< 0 for a whole item

  friend bool operator==(const PackedItem&, const PackedItem&) noexcept = default;
};

/// Items that run together: entries [begin, begin + count) of Packing::order, each of another item.
struct SubBatch {
  std::int64_t begin = 0;
  std::int64_t count = 0;
  std::int64_t seqs = 0;
  PathTokens load{};  ///< tokens per path
  /// Smallest budget that fits the load of each path; 0: path not needed; absent: load above the
  /// largest budget.
  std::array<std::optional<std::int64_t>, kMaxPaths> budgets{};
  bool too_many_seqs = false;  ///< a single video above max_frames: no graph may take it

  /// Whether `item` may join.
  [[nodiscard]] bool has_room_for(const ItemSpec& item, const PackingLimits& limits) const;
  /// Whether an item that has room had better run in another sub-batch: if, on any of its paths,
  /// its own budget is not below that of the load so far, and both together are below that of the
  /// sum.
  [[nodiscard]] bool is_cheaper_without(const ItemSpec& item, const PackingLimits& limits) const;
  void add(const ItemSpec& item);
  /// Looks up budgets and too_many_seqs of the final load.
  void close(const PackingLimits& limits);
};

/// Every item exactly once, whole or unit by unit, cut into sub-batches.
struct Packing {
  std::vector<PackedItem> order;
  std::vector<SubBatch> batches;
  std::vector<std::int64_t> sorted = {};  ///< memory of the packers

  [[nodiscard]] std::span<const PackedItem> items(const SubBatch& batch) const {
    return std::span(order).subspan(static_cast<std::size_t>(batch.begin),
                                    static_cast<std::size_t>(batch.count));
  }
};

/// Milliseconds, or anything proportional to them, by load: linear between two loads, constant
/// beyond them.
struct LoadCost {
  struct Point {
    std::int64_t tokens = 0;
    double cost = 0;
  };
  Point low = {};  ///< no tokens: there is none, and the cost is that of `high` whatever the load
  Point high = {};

  [[nodiscard]] double at(std::int64_t tokens) const noexcept;
};

/// Costs of running a path once.
struct PathCost {
  std::vector<LoadCost> replay;   ///< per entry of the path's budgets; of a 0 in front: ignored
  double eager_per_token = 1.25;  ///< of loads above the largest budget
};

/// More replays must cost less than fewer by this factor: costs are measured to 1 %, and every
/// replay is one more launch.
inline constexpr double kWorthMoreRuns = 0.99;

/// Cost of sub-batches per path. Without measurements a replay costs its budget, full or not.
struct PackingCosts {
  std::vector<PathCost> paths;

  /// One unit per token of the budget.
  [[nodiscard]] static PackingCosts from_budgets(
      std::span<const std::vector<std::int64_t>> path_budgets);
  /// One unit per token of the load: of runs that compute no padding.
  [[nodiscard]] static PackingCosts from_loads(
      std::span<const std::vector<std::int64_t>> path_budgets);
};

/// Tokens of an item on all paths: what packing orders items by.
[[nodiscard]] std::int64_t total_tokens(const ItemSpec& item);
/// Item indices by ascending total_tokens, ties by index. Allocates only what `order` lacks.
void sort_by_tokens(std::span<const ItemSpec> items, std::vector<std::int64_t>& order);

/// Orders items by ascending sum of path tokens (ties in index order) and fills sub-batches in that
/// order up to the largest budget of every path, max_items and max_frames. An item that fits
/// nowhere gets a sub-batch of its own. Deterministic; O(n log n); allocates only what `packing`
/// lacks.
/// @param policy kGreedy also closes a sub-batch where it is_cheaper_without() the next item;
/// kGreedyFill does not.
/// Source: docs/reference/encoder_graphs.md, "Greedy packing" and "Sequences".
void pack_greedy(std::span<const ItemSpec> items, const PackingLimits& limits, Packing& packing,
                 PackingPolicy policy = PackingPolicy::kGreedy);

/// Fills sub-batches of one path each with units, in the order of pack_greedy, up to the largest
/// budget and the same limits, which count an item once however many of its units run together. A
/// sub-batch that leaves room runs in smaller budgets where these cost less. Only a unit that fits
/// nowhere gets a sub-batch of its own. Items stay whole, packed by the cheaper of both greedy
/// rules, where none has several units and where that costs less. Deterministic; O(n log n +
/// sub-batches) and allocates only what `packing` lacks. Source: docs/reference/encoder_graphs.md,
/// "Packing of units".
void pack_units(std::span<const ItemSpec> items, const PackingLimits& limits,
                const PackingCosts& costs, Packing& packing);

/// Packs for the least sum of costs: the cheaper of the greedy plan and of one that fills budgets
/// around the largest item left. Deterministic; O(n^2) for fixed budgets.
/// Source: docs/reference/encoder_graphs.md, "Packing by cost".
void pack_by_cost(std::span<const ItemSpec> items, const PackingLimits& limits,
                  const PackingCosts& costs, Packing& packing);

/// Packs by the given policy. @param costs not used by greedy ones.
void pack(std::span<const ItemSpec> items, const PackingLimits& limits, const PackingCosts& costs,
          PackingPolicy policy, Packing& packing);

/// The sub-batches of a GraphManager with this configuration; nothing but arithmetic. A budget
/// is its own cost. @param replayed as limits_of. @param pads false: where units are packed, a load
/// is its own cost, as of eager runs, and of replays on a CPU.
[[nodiscard]] Packing plan_packing(const GraphConfig& config, std::span<const ItemSpec> items,
                                   PackingPolicy policy, bool replayed = true, bool pads = true);

/// Sum of the costs of all sub-batches.
[[nodiscard]] double total_cost(const Packing& packing, const PackingLimits& limits,
                                const PackingCosts& costs);

}  // namespace fovea
