// Which items run together: the dispatcher, and the reference's rules of smallest items first and
// one open sub-batch.
#include "graph/packing.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "graph/budgets.h"

namespace fovea {

namespace {

/// The budget that a load runs at: 0 for none.
std::optional<std::int64_t> budget_of(std::int64_t tokens, std::span<const std::int64_t> budgets) {
  return tokens == 0 ? std::optional<std::int64_t>(0) : find_budget(tokens, budgets);
}

}  // namespace

PackingLimits limits_of(const GraphConfig& config, bool replayed) noexcept {
  return {.path_budgets = config.path_budgets,
          .max_items = config.max_items,
          .max_frames = replayed ? config.max_frames : config.max_seqs};
}

bool SubBatch::has_room_for(const ItemSpec& item, const PackingLimits& limits) const {
  if (count >= limits.max_items) return false;
  const std::int64_t all_seqs = seqs + item.num_seqs;
  const bool has_video = all_seqs > count + 1;
  if (has_video && all_seqs > limits.max_frames) return false;
  for (std::size_t path = 0; path < limits.path_budgets.size(); ++path) {
    if (load[path] + item.path_tokens[path] > limits.path_budgets[path].back()) return false;
  }
  return true;
}

bool SubBatch::is_cheaper_without(const ItemSpec& item, const PackingLimits& limits) const {
  for (std::size_t path = 0; path < limits.path_budgets.size(); ++path) {
    const std::vector<std::int64_t>& path_budgets = limits.path_budgets[path];
    const std::int64_t tokens = item.path_tokens[path];
    if (tokens == 0) continue;
    const auto own = budget_of(tokens, path_budgets);
    const auto open = budget_of(load[path], path_budgets);
    const auto together = budget_of(load[path] + tokens, path_budgets);
    // Only of an item without room has one of them no budget.
    if (own && open && together && *own >= *open && *open + *own < *together) return true;
  }
  return false;
}

void SubBatch::add(const ItemSpec& item) {
  ++count;
  seqs += item.num_seqs;
  for (std::size_t path = 0; path < kMaxPaths; ++path) load[path] += item.path_tokens[path];
}

void SubBatch::close(const PackingLimits& limits) {
  for (std::size_t path = 0; path < limits.path_budgets.size(); ++path) {
    budgets[path] = budget_of(load[path], limits.path_budgets[path]);
  }
  too_many_seqs = seqs > count && seqs > limits.max_frames;
}

std::int64_t total_tokens(const ItemSpec& item) {
  return std::accumulate(item.path_tokens.begin(), item.path_tokens.end(), std::int64_t{0});
}

void sort_by_tokens(std::span<const ItemSpec> items, std::vector<std::int64_t>& order) {
  order.resize(items.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  // Ties by index make an ordinary sort stable; std::ranges::stable_sort would allocate.
  std::ranges::sort(order, {}, [&](std::int64_t index) {
    return std::tuple(total_tokens(items[static_cast<std::size_t>(index)]), index);
  });
}

void pack_greedy(std::span<const ItemSpec> items, const PackingLimits& limits, Packing& packing,
                 PackingPolicy policy) {
  sort_by_tokens(items, packing.sorted);
  packing.order.clear();
  packing.batches.clear();
  SubBatch open;
  const auto close_open = [&] {
    open.close(limits);
    packing.batches.push_back(open);
    open = {.begin = open.begin + open.count};
  };
  for (const std::int64_t index : packing.sorted) {
    const ItemSpec& item = items[static_cast<std::size_t>(index)];
    const bool is_closed =
        open.count > 0 &&
        (!open.has_room_for(item, limits) ||
         (policy == PackingPolicy::kGreedy && open.is_cheaper_without(item, limits)));
    if (is_closed) close_open();
    open.add(item);
    packing.order.push_back({.item = index});
  }
  if (open.count > 0) close_open();
}

void pack(std::span<const ItemSpec> items, const PackingLimits& limits, const PackingCosts& costs,
          PackingPolicy policy, Packing& packing) {
  switch (policy) {
    case PackingPolicy::kUnits: return pack_units(items, limits, costs, packing);
    case PackingPolicy::kCost: return pack_by_cost(items, limits, costs, packing);
    case PackingPolicy::kGreedy:
    case PackingPolicy::kGreedyFill: return pack_greedy(items, limits, packing, policy);
  }
}

Packing plan_packing(const GraphConfig& config, std::span<const ItemSpec> items,
                     PackingPolicy policy, bool replayed, bool pads) {
  Packing packing;
  const bool by_load = policy == PackingPolicy::kUnits && !(replayed && pads);
  const PackingCosts costs = by_load ? PackingCosts::from_loads(config.path_budgets)
                                     : PackingCosts::from_budgets(config.path_budgets);
  pack(items, limits_of(config, replayed), costs, policy, packing);
  return packing;
}

}  // namespace fovea
