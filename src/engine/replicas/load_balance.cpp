// Largest first, always to the replica that has least to do.
#include "engine/replicas/load_balance.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "core/check.h"

namespace fovea {

namespace {

/// In input rows.
std::int64_t cost_of(const ItemSpec& item, std::int64_t attention_parity_rows) {
  if (attention_parity_rows == 0 || item.num_seqs == 0) return item.input_rows;
  const auto rows = static_cast<double>(item.input_rows);
  const double keys = rows / static_cast<double>(item.num_seqs);
  return static_cast<std::int64_t>(rows + rows * keys / static_cast<double>(attention_parity_rows));
}

}  // namespace

std::span<const std::size_t> Assignment::items(std::size_t replica) const {
  const auto first = counts.begin();
  const auto own = first + static_cast<std::ptrdiff_t>(replica);
  return std::span(order).subspan(std::accumulate(first, own, std::size_t{0}), *own);
}

Assignment balance_load(std::span<const std::int64_t> sizes, std::size_t num_replicas) {
  FOVEA_CHECK(num_replicas >= 1, kInvalidArgument, "items need at least one replica, got 0");
  std::vector<std::size_t> by_size(sizes.size());
  std::iota(by_size.begin(), by_size.end(), std::size_t{0});
  std::ranges::stable_sort(by_size, std::ranges::greater{},
                           [&](std::size_t item) { return sizes[item]; });

  Assignment result;
  result.loads.resize(num_replicas);
  std::vector<std::vector<std::size_t>> shares(num_replicas);
  for (const std::size_t item : by_size) {
    FOVEA_CHECK(sizes[item] >= 0, kInvalidArgument, "the size of item ", item,
                " must be >= 0, got ", sizes[item]);
    const auto least = std::ranges::min_element(result.loads);  // the first of several
    *least += sizes[item];
    shares[static_cast<std::size_t>(least - result.loads.begin())].push_back(item);
  }
  result.order.reserve(sizes.size());
  for (const std::vector<std::size_t>& share : shares) {
    result.order.insert(result.order.end(), share.begin(), share.end());
    result.counts.push_back(share.size());
  }
  return result;
}

std::vector<ItemPiece> cut_items(const GraphSpec& spec, std::span<const ItemSpec> items,
                                 std::size_t num_replicas) {
  const auto replicas = static_cast<std::int64_t>(num_replicas);
  std::int64_t total = 0;
  for (const ItemSpec& item : items) total += cost_of(item, spec.attention_parity_rows);
  std::vector<ItemPiece> pieces;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::optional<int> path = ItemShare::path_of(items[i]);
    const bool is_large = cost_of(items[i], spec.attention_parity_rows) * 4 * replicas > total;
    if (replicas == 1 || !path || !is_large) {
      pieces.push_back({.item = i});
      continue;
    }
    const std::int64_t units = items[i].units_on(*path).count;
    const std::int64_t shares = std::min(replicas, units);
    for (std::int64_t k = 0; k < shares; ++k) {
      const std::int64_t first = units * k / shares;
      const UnitRange range{first, units * (k + 1) / shares - first};
      pieces.push_back({.item = i, .share = {.units = range, .counts = k == 0}});
    }
  }
  return pieces;
}

Assignment assign_items(const GraphSpec& spec, std::span<const ItemSpec> items,
                        std::size_t num_replicas) {
  std::vector<std::int64_t> sizes;
  sizes.reserve(items.size());
  for (const ItemSpec& item : items) sizes.push_back(cost_of(item, spec.attention_parity_rows));
  Assignment assignment = balance_load(sizes, num_replicas);
  if (num_replicas == 1) std::ranges::sort(assignment.order);
  return assignment;
}

}  // namespace fovea
