#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fovea/tower/models/encoder_graph_model.h"

namespace fovea {

/// Which replica encodes which item.
struct Assignment {
  std::vector<std::size_t> order;   ///< item indices: those of replica 0, then of replica 1, ...
  std::vector<std::size_t> counts;  ///< items per replica; 0 is possible
  std::vector<std::int64_t> loads;  ///< sum of sizes per replica

  /// Items of one replica in the order in which it takes them. Valid while this object lives.
  [[nodiscard]] std::span<const std::size_t> items(std::size_t replica) const;
};

/// Spreads items over replicas: from the largest item to the smallest, equal ones in order of their
/// index, each goes to the replica with the smallest load so far, the first of several.
///   7 5 4 3 1 over 2 -> [0 3] and [1 2 4], loads 10 and 10
/// The largest load exceeds the mean by less than the largest item. Depends on nothing but its
/// arguments.
/// @param sizes of the items, >= 0. @param num_replicas >= 1.
/// @throws Error(kInvalidArgument) if one of them is not.
/// Source: docs/reference/encoder_graphs.md, "Load balancing".
[[nodiscard]] Assignment balance_load(std::span<const std::int64_t> sizes,
                                      std::size_t num_replicas);

/// Spreads items of a model over replicas by their cost: input rows, and those once more for every
/// spec.attention_parity_rows that a row attends to. A single replica takes items as they come.
[[nodiscard]] Assignment assign_items(const GraphSpec& spec, std::span<const ItemSpec> items,
                                      std::size_t num_replicas);

/// An item, or the share of it that a replica or a rank encodes.
struct ItemPiece {
  std::size_t item = 0;  ///< its index
  ItemShare share = {};
};

/// Cuts items that would keep one replica busy while others have nothing to do: those of more than
/// a fourth of the cost that falls to each replica, into a share for each of them, equal but for
/// one unit. The others, and those that cannot be shared, stay whole.
/// @return pieces in the order of items and of their units.
[[nodiscard]] std::vector<ItemPiece> cut_items(const GraphSpec& spec,
                                               std::span<const ItemSpec> items,
                                               std::size_t num_replicas);

}  // namespace fovea
