// The reference's packing rule: smallest items first, one open sub-batch.
#include "graph/packing.h"

#include <algorithm>
#include <numeric>

#include "graph/budgets.h"
#include "graph/packing_detail.h"

namespace fovea {

namespace packing_detail {

std::int64_t total_tokens(const ItemSpec& item) {
  return std::accumulate(item.path_tokens.begin(), item.path_tokens.end(), std::int64_t{0});
}

void sort_by_tokens(std::span<const ItemSpec> items, std::vector<std::int64_t>& order) {
  order.resize(items.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  // Ties by index make an ordinary sort stable; std::stable_sort would allocate.
  std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    const std::int64_t tokens_a = total_tokens(items[static_cast<std::size_t>(a)]);
    const std::int64_t tokens_b = total_tokens(items[static_cast<std::size_t>(b)]);
    return tokens_a != tokens_b ? tokens_a < tokens_b : a < b;
  });
}

bool fits(const SubBatch& batch, const ItemSpec& item, const PackingLimits& limits) {
  if (batch.count >= limits.max_items || batch.seqs + item.num_seqs > limits.max_seqs) return false;
  for (std::size_t path = 0; path < limits.path_budgets.size(); ++path) {
    if (batch.load[path] + item.path_tokens[path] > limits.path_budgets[path].back()) return false;
  }
  return true;
}

void add(SubBatch& batch, const ItemSpec& item) {
  ++batch.count;
  batch.seqs += item.num_seqs;
  for (std::size_t path = 0; path < kMaxPaths; ++path) batch.load[path] += item.path_tokens[path];
}

void close(SubBatch& batch, const PackingLimits& limits) {
  for (std::size_t path = 0; path < limits.path_budgets.size(); ++path) {
    batch.budgets[path] = batch.load[path] == 0
                              ? std::optional<std::int64_t>(0)
                              : find_budget(batch.load[path], limits.path_budgets[path]);
  }
  batch.too_many_seqs = batch.seqs > limits.max_seqs;
}

}  // namespace packing_detail

void pack_greedy(std::span<const ItemSpec> items, const PackingLimits& limits, Packing& packing) {
  packing_detail::sort_by_tokens(items, packing.order);
  packing.batches.clear();
  SubBatch open;
  const auto close_open = [&] {
    packing_detail::close(open, limits);
    packing.batches.push_back(open);
    open = {.begin = open.begin + open.count};
  };
  for (const std::int64_t index : packing.order) {
    const ItemSpec& item = items[static_cast<std::size_t>(index)];
    if (open.count > 0 && !packing_detail::fits(open, item, limits)) close_open();
    packing_detail::add(open, item);
  }
  if (open.count > 0) close_open();
}

}  // namespace fovea
