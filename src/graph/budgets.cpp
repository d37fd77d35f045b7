// Budget lists: pure integer arithmetic.
#include "graph/budgets.h"

#include "core/check.h"

#include <algorithm>

namespace fovea {

namespace {

/// Budgets that hold whole units, from `minimum` on and with it.
std::vector<std::int64_t> cut_to_units(std::span<const std::int64_t> budgets, std::int64_t minimum,
                                       std::int64_t unit) {
  std::vector<std::int64_t> kept{minimum};
  for (const std::int64_t budget : budgets) {
    if (budget >= minimum) kept.push_back(std::max(minimum, capacity_of_budget(budget, unit)));
  }
  sort_unique(kept);
  return kept;
}

/// The user's budgets as far as a path with a minimum can use them.
std::vector<std::int64_t> adapt_to_path(const PathSpec& path,
                                        std::span<const std::int64_t> token_budgets,
                                        const PathBudgetRules& rules) {
  const std::int64_t minimum = *path.min_token_budget;
  std::vector<std::int64_t> budgets(token_budgets.begin(), token_budgets.end());
  if (rules.inferred_top) {
    const std::int64_t inferred = *rules.inferred_top;
    const std::int64_t item = std::min(path.max_item_tokens.value_or(inferred), inferred);
    const std::int64_t top = std::max(budgets.back(), item);
    const std::vector<std::int64_t> doubling = generate_budgets(minimum, top);
    budgets.push_back(std::min(inferred, top));
    budgets.insert(budgets.end(), doubling.begin(), doubling.end());
  }
  return cut_to_units(budgets, minimum, path.unit);
}

/// Drops what lies above the first budget that covers every possible load, and puts the marker of a
/// path that may be absent in front.
void finish_list(const PathSpec& path, std::int64_t max_items, std::vector<std::int64_t>& budgets) {
  const auto load = checked_mul(max_items, path.max_item_tokens.value_or(0));
  const auto covers = [&](std::int64_t budget) {
    return capacity_of_budget(budget, path.unit) >= *load;
  };
  if (path.max_item_tokens && load) {
    const auto first = std::ranges::find_if(budgets, covers);
    if (first != budgets.end()) budgets.erase(first + 1, budgets.end());
  }
  if (path.allow_zero_tokens) budgets.insert(budgets.begin(), 0);
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
    FOVEA_CHECK(minimum > 0, kInvalidArgument, "Invalid minimum budget of path \"", path.name,
                "\": expected at least 1, got ", minimum);
    FOVEA_CHECK(minimum <= top, kInvalidArgument, "expected a token budget of at least ", minimum,
                ", the minimum budget of path \"", path.name, "\", got none above ", top);
    budgets = rules.user_budgets ? adapt_to_path(path, token_budgets, rules)
                                 : generate_budgets(minimum, top);
  }
  finish_list(path, rules.max_items, budgets);
  return budgets;
}

std::vector<std::int64_t> given_path_budgets(const PathSpec& path,
                                             std::span<const std::int64_t> budgets,
                                             std::int64_t max_items) {
  std::vector<std::int64_t> given;
  for (const std::int64_t budget : budgets) {
    FOVEA_CHECK(budget >= path.unit, kInvalidArgument, "encoder_cudagraph_token_budgets of path \"",
                path.name, "\" must hold a unit of ", path.unit, " tokens, got ",
                list_text(budgets));
    given.push_back(capacity_of_budget(budget, path.unit));
  }
  sort_unique(given);
  finish_list(path, max_items, given);
  return given;
}

std::string list_text(std::span<const std::int64_t> values) {
  std::string text = "[";
  for (std::size_t i = 0; i < values.size(); ++i) text += cat(i == 0 ? "" : ", ", values[i]);
  return text + "]";
}

}  // namespace fovea
