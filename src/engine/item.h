#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/check.h"
#include "engine/cached/item_key.h"
#include "engine/prepare.h"
#include "engine/replicas/shared_item.h"
#include "fovea/embedding.h"
#include "fovea/media.h"
#include "fovea/tower/models/encoder_graph_model.h"
#include "rows/row_cache.h"
#include "rows/row_target.h"

namespace fovea {

/// An item of a call, from its media to its rows: everything that the engine knows of it.
struct Item {
  const MediaItem* media;
  RowTarget target;                           ///< where its rows go in the end, and its result
  ItemShare share = {};                       ///< what of it is wanted
  bool is_planned = false;                    ///< somebody has looked at its header
  std::optional<ItemPlan> plan = {};          ///< as far as that tells
  std::optional<ItemKey> key = {};            ///< absent: the encoder cache is not asked
  std::optional<RowCache::Claim> claim = {};  ///< to its rows: to encode, to read or to wait
  PreparedMedia prepared = {};                ///< until the tower has begun with it
  SharedItem* shared = nullptr;               ///< its shares, if it comes a few units at a time

  [[nodiscard]] Embedding& result() const noexcept { return *target.result; }
  /// A plan of the item, as far as it is wanted.
  [[nodiscard]] ItemPlan wanted(const ItemPlan& of_all) const {
    return plan_of_units(of_all, share.units);
  }
  /// What the encoder cache knows the wanted rows by; the item has a key.
  [[nodiscard]] std::string cache_key() const {
    const auto& [first, count] = share.units;
    return count == 0 ? key->text : cat(key->text, ' ', first, '+', count);
  }
  [[nodiscard]] ItemAhead ahead() const noexcept {
    return {.plan = plan ? &*plan : nullptr, .units = share.units};
  }
};

/// Some items of a call, in the order in which something is done with them.
using Selection = std::vector<Item*>;

}  // namespace fovea
