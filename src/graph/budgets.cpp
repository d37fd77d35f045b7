// Budget lists: pure integer arithmetic.
#include "graph/budgets.h"

#include <algorithm>
#include <sstream>

namespace fovea {

namespace {

/// The user's budgets as far as this path can use them.
std::vector<std::int64_t> cut_to_units(std::span<const std::int64_t> budgets, std::int64_t minimum,
                                       std::int64_t unit) {
  std::vector<std::int64_t> kept{minimum};
  for (const std::int64_t budget : budgets) {
    if (budget >= minimum) kept.push_back(std::max(minimum, capacity_of_budget(budget, unit)));
  }
  sort_unique(kept);
  return kept;
}

/// Drops what lies above the first budget that covers every possible load.
void drop_unreachable(std::vector<std::int64_t>& budgets, std::int64_t unit, std::int64_t load) {
  const auto covers = [&](std::int64_t budget) { return capacity_of_budget(budget, unit) >= load; };
  const auto first = std::ranges::find_if(budgets, covers);
  if (first != budgets.end()) budgets.erase(first + 1, budgets.end());
}

}  // namespace

void sort_unique(std::vector<std::int64_t>& values) {
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

std::vector<std::int64_t> generate_budgets(std::int64_t first, std::int64_t last) {
  std::vector<std::int64_t> budgets;
  for (std::int64_t budget = first; budget <= last; budget *= 2) {
    budgets.push_back(budget);
    if (budget > last / 2) break;  // the next doubling would pass `last`, or 63 bits
  }
  if (budgets.empty() || budgets.back() < last) budgets.push_back(last);
  return budgets;
}

std::optional<std::int64_t> find_budget(std::int64_t tokens,
                                        std::span<const std::int64_t> budgets) {
  const auto found = std::ranges::lower_bound(budgets, tokens);
  if (found == budgets.end()) return std::nullopt;
  return *found;
}

std::vector<std::int64_t> path_budgets(const PathSpec& path,
                                       std::span<const std::int64_t> token_budgets,
                                       const PathBudgetRules& rules) {
  const std::int64_t top = token_budgets.back();
  std::vector<std::int64_t> budgets(token_budgets.begin(), token_budgets.end());
  if (path.min_token_budget) {
    const std::int64_t minimum = *path.min_token_budget;
    FOVEA_CHECK(minimum > 0 && minimum <= top, kInvalidArgument,
                "Invalid minimum budget of path \"", path.name, "\": expected 1 to ", top, ", got ",
                minimum);
    budgets = rules.user_budgets ? cut_to_units(token_budgets, minimum, path.unit)
                                 : generate_budgets(minimum, top);
  }
  if (path.max_item_tokens) {
    const auto load = checked_mul(rules.max_items, *path.max_item_tokens);
    if (load) drop_unreachable(budgets, path.unit, *load);
  }
  if (path.allow_zero_tokens) budgets.insert(budgets.begin(), 0);
  return budgets;
}

std::string list_text(std::span<const std::int64_t> values) {
  std::ostringstream text;
  text << '[';
  for (std::size_t i = 0; i < values.size(); ++i) text << (i == 0 ? "" : ", ") << values[i];
  text << ']';
  return std::move(text).str();
}

}  // namespace fovea
