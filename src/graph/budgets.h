#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fovea/tower/models/encoder_graph_model.h"

namespace fovea {

/// Sorts ascending and drops repetitions.
void sort_unique(std::vector<std::int64_t>& values);

/// Budgets from `first` to `last`: doubles while it stays within `last`, then ends with `last`.
///   (64, 800) -> 64 128 256 512 800        (5, 3) -> 3
/// @param first > 0. @param last > 0.
/// Source: docs/reference/encoder_graphs.md, "Generated budgets".
[[nodiscard]] std::vector<std::int64_t> generate_budgets(std::int64_t first, std::int64_t last);

/// The smallest of the ascending `budgets` that is >= tokens; absent if there is none.
[[nodiscard]] std::optional<std::int64_t> find_budget(std::int64_t tokens,
                                                      std::span<const std::int64_t> budgets);

/// Tokens that a graph of this budget holds: whole units only.
[[nodiscard]] constexpr std::int64_t capacity_of_budget(std::int64_t budget,
                                                        std::int64_t unit) noexcept {
  return budget / unit * unit;
}

struct PathBudgetRules {
  bool user_budgets = false;   ///< `token_budgets` were written by the user, not inferred
  std::int64_t max_items = 1;  ///< largest number of items in one replay
  /// Largest budget that would be inferred, where the user wrote one list for several paths.
  std::optional<std::int64_t> inferred_top = {};
};

/// The ascending budgets of one path, derived from the budgets of the configuration:
/// - without a minimum: `token_budgets` as they are;
/// - with a minimum u: inferred budgets are regenerated as generate_budgets(u, top); budgets of the
///   user are kept from u on, cut to whole units, together with u itself;
/// - one list of the user for several paths fits none of them by itself: doubling budgets from u to
///   its top are added, or to the largest item that has an inferred budget if that is more, so that
///   no load takes a larger budget than an inferred one, and no item falls back for want of one;
/// - budgets above the first that covers max_items * max_item_tokens can never be chosen and go;
/// - a 0 in front marks a path that an item may not need; it is never captured.
/// @param token_budgets ascending, not empty.
/// @throws Error(kInvalidArgument) if the minimum is not in [1, top].
/// Source: docs/reference/encoder_graphs.md, "Budgets of a path".
[[nodiscard]] std::vector<std::int64_t> path_budgets(const PathSpec& path,
                                                     std::span<const std::int64_t> token_budgets,
                                                     const PathBudgetRules& rules);

/// The budgets that the user wrote for this path: ascending, cut to whole units, without those that
/// can never be chosen, 0 in front as above.
/// @param budgets > 0, not empty.
/// @throws Error(kInvalidArgument) for a budget below a unit.
[[nodiscard]] std::vector<std::int64_t> given_path_budgets(const PathSpec& path,
                                                           std::span<const std::int64_t> budgets,
                                                           std::int64_t max_items);

/// "[64, 128]", for messages.
[[nodiscard]] std::string list_text(std::span<const std::int64_t> values);

}  // namespace fovea
