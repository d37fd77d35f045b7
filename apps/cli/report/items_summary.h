#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "fovea/embedding.h"

namespace fovea::cli {

/// Most items of which a run prints a line each unless it is asked to.
inline constexpr std::size_t kMostItemLines = 20;

/// What there is to say of many items in a few lines: how many there are, their rows, what each
/// stage took together, in the middle and at most, and for which item. Items that failed are
/// counted, and count for nothing else.
/// @param differences to the reference, one per item; empty: none were asked for.
[[nodiscard]] std::string items_summary(std::span<const Embedding> items,
                                        std::span<const std::optional<double>> differences);

}  // namespace fovea::cli
