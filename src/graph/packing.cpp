// Which items run together: the dispatcher, and the reference's rule of smallest items first and
// one open sub-batch.
#include "graph/packing.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "graph/budgets.h"

namespace fovea {

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

void SubBatch::add(const ItemSpec& item) {
  ++count;
  seqs += item.num_seqs;
  for (std::size_t path = 0; path < kMaxPaths; ++path) load[path] += item.path_tokens[path];
}

void SubBatch::close(const PackingLimits& limits) {
  for (std::size_t path = 0; path < limits.path_budgets.size(); ++path) {
    budgets[path] = load[path] == 0 ? std::optional<std::int64_t>(0)
                                    : find_budget(load[path], limits.path_budgets[path]);
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

void pack_greedy(std::span<const ItemSpec> items, const PackingLimits& limits, Packing& packing) {
  sort_by_tokens(items, packing.order);
  packing.batches.clear();
  SubBatch open;
  const auto close_open = [&] {
    open.close(limits);
    packing.batches.push_back(open);
    open = {.begin = open.begin + open.count};
  };
  for (const std::int64_t index : packing.order) {
    const ItemSpec& item = items[static_cast<std::size_t>(index)];
    if (open.count > 0 && !open.has_room_for(item, limits)) close_open();
    open.add(item);
  }
  if (open.count > 0) close_open();
}

void pack(std::span<const ItemSpec> items, const PackingLimits& limits, const PackingCosts& costs,
          PackingPolicy policy, Packing& packing) {
  if (policy == PackingPolicy::kCost) {
    pack_by_cost(items, limits, costs, packing);
  } else {
    pack_greedy(items, limits, packing);
  }
}

Packing plan_packing(const GraphConfig& config, std::span<const ItemSpec> items,
                     PackingPolicy policy, bool replayed) {
  Packing packing;
  pack(items, limits_of(config, replayed), PackingCosts::from_budgets(config.path_budgets), policy,
       packing);
  return packing;
}

}  // namespace fovea
