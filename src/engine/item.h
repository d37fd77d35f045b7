#pragma once

#include <optional>
#include <vector>

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
  bool is_planned = false;                    ///< somebody has looked at its header
  std::optional<ItemPlan> plan = {};          ///< as far as that tells
  std::optional<ItemKey> key = {};            ///< absent: the encoder cache is not asked
  std::optional<RowCache::Claim> claim = {};  ///< to its rows: to encode, to read or to wait
  PreparedMedia prepared = {};                ///< until the tower has begun with it
  SharedItem* shared = nullptr;               ///< its shares, if it comes a few units at a time

  [[nodiscard]] Embedding& result() const noexcept { return *target.result; }
  [[nodiscard]] ItemAhead ahead() const noexcept { return {.plan = plan ? &*plan : nullptr}; }
};

/// Some items of a call, in the order in which something is done with them.
using Selection = std::vector<Item*>;

}  // namespace fovea
