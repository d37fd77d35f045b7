#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "engine/item.h"
#include "engine/item_view.h"
#include "fovea/embedding.h"
#include "fovea/engine.h"
#include "fovea/row_block.h"
#include "fovea/tower/device/device.h"
#include "rows/row_mover.h"

namespace fovea {

/// A call of encode(): its items, what they are called with, and how far they are.
struct Call {
  /// @param destinations one for each item, as check_destinations has passed them; none: rows go to
  /// the results. All arguments must outlive this object.
  Call(ItemView media, const EncodeOptions& options, const Destinations& destinations);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  /// Gives an item an error, or throws it, as the call wants.
  void fail(Item& item, const Error& error) const;
  /// Why there is no room for so many rows of an item, in its target or for its caller.
  [[nodiscard]] std::optional<Error> lacks_room(const Item& item, std::int64_t rows) const;
  /// Whether there is. If not, the item fails, for a reason of this call: who waits for it encodes
  /// it.
  [[nodiscard]] bool has_room(Item& item, std::int64_t rows) const;
  /// Tells the caller that so many items are done, if it has not heard of as many.
  void tell(std::int64_t items_done);

  const EncodeOptions& how;
  const Destinations& to;
  std::vector<Embedding> results;
  std::vector<Item> items;             // each with its result
  std::deque<SharedItem> shared = {};  // items that come a few units at a time
  std::vector<RowMove> known = {};     // of rows that came with the call, or are in the cache
  std::int64_t done = 0;               // items, for how.progress
  std::int64_t told = 0;
};

/// What Engine::encode says about destinations and their copies, but for whether rows fit there.
/// @param width of the rows. @param device any of the engine.
/// @throws Error(kInvalidArgument).
void check_destinations(const Destinations& to, std::span<const Destinations> copies,
                        ItemView items, std::int64_t width, const Device& device);

}  // namespace fovea
