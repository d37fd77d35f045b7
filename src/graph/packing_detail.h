#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/packing.h"

/// Steps that both packers share; for packing.cpp and packing_cost.cpp only.
namespace fovea::packing_detail {

[[nodiscard]] std::int64_t total_tokens(const ItemSpec& item);
/// Item indices by ascending tokens, ties by index.
void sort_by_tokens(std::span<const ItemSpec> items, std::vector<std::int64_t>& order);
/// Whether `item` may join the open `batch`.
[[nodiscard]] bool fits(const SubBatch& batch, const ItemSpec& item, const PackingLimits& limits);
void add(SubBatch& batch, const ItemSpec& item);
/// Looks up the budgets of the final load.
void close(SubBatch& batch, const PackingLimits& limits);

}  // namespace fovea::packing_detail
