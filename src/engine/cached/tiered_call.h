#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "engine/cached/item_key.h"
#include "engine/item_view.h"
#include "engine/tiers/tier_cache.h"
#include "fovea/engine.h"

namespace fovea {

/// A call of encode() that asks the memories of the encoder cache for its items, as CachedCall does
/// the host: which of them it has to encode, and who waits for those. The rows of the others stand
/// in for those of the tower, so that all that is done to these is done to them. Not thread-safe.
class TieredCall {
 public:
  /// An item of the call whose rows are in the cache.
  struct Found {
    std::size_t item;
    TierCache::Claim claim;
    CacheUse use;
  };

  /// @param keys of the items; absent: the item is encoded, and the cache is not asked.
  /// All but the keys must outlive this object.
  TieredCall(TierCache& cache, std::vector<std::optional<ItemKey>> keys, ItemView media,
             std::span<Embedding> results);

  /// Indices of the items that this call has to encode next.
  [[nodiscard]] const std::vector<std::size_t>& to_encode() const noexcept { return to_encode_; }
  /// The items found since the last call.
  [[nodiscard]] std::vector<Found> take_found() { return std::exchange(found_, {}); }
  /// What stores the rows of an item of to_encode(); null if they are not to be kept: they have no
  /// key, or are no longer those of a file that it names.
  /// @param described the item but for its rows.
  [[nodiscard]] TierCache::Claim* keeper(std::size_t item, const Embedding& described);
  /// Takes the result of an item: one that failed, or was not stored, is none that others get.
  void encoded(std::size_t item);
  /// Waits for items that others, or this call, have encoded. Fills to_encode(), with an item that
  /// another call has given up, or take_found().
  /// @return whether there was anything left.
  /// @throws Error of an item that failed elsewhere unless `on_error` is kSkip; as check_interrupt.
  [[nodiscard]] bool wait_for_others(OnError on_error);
  /// Tells those who wait why this call ends early, if it is the fault of what they wait for.
  void failed(const Error& error);

 private:
  struct Item {
    std::optional<ItemKey> key;
    std::optional<TierCache::Claim> claim;  // to encode it, or to wait
  };

  void fail(std::size_t item, const Error& error);

  ItemView media_;
  std::span<Embedding> results_;
  std::vector<Item> items_;
  std::unordered_set<std::string> own_keys_;  // that this call encodes
  std::vector<std::size_t> to_encode_;
  std::vector<Found> found_;
};

}  // namespace fovea
