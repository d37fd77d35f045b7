#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "engine/cached/item_key.h"
#include "engine/prepare/item_view.h"
#include "fovea/engine.h"
#include "rows/row_cache.h"

namespace fovea {

/// A call of encode() that asks the encoder cache for its items: which of them it has to encode,
/// and who waits for those. The rows of the others stand in for those of the tower, so that all
/// that is done to these is done to them. A call that ends early leaves what it has not encoded to
/// those who wait. Not thread-safe.
class CachedCall {
 public:
  /// An item of the call whose rows are in the cache.
  struct Found {
    std::size_t item;
    RowCache::Claim claim;
    CacheUse use;
  };

  /// @param keys of the items; absent: the item is encoded, and the cache is not asked.
  /// All but the keys must outlive this object.
  CachedCall(RowCache& cache, std::vector<std::optional<ItemKey>> keys, ItemView media,
             std::span<Embedding> results);

  /// Indices of the items that this call has to encode next.
  [[nodiscard]] const std::vector<std::size_t>& to_encode() const noexcept { return to_encode_; }
  /// The items found since the last call.
  [[nodiscard]] std::vector<Found> take_found() { return std::exchange(found_, {}); }
  /// What stores the rows of an item of to_encode(); null if they are not to be kept: they have no
  /// key, or are no longer those of a file that it names.
  /// @param described the item but for its rows.
  [[nodiscard]] RowCache::Claim* keeper(std::size_t item, const Embedding& described);
  /// Leaves an item of to_encode() to those who wait: it fails for a reason of this call.
  void leave(std::size_t item) { items_[item].claim.reset(); }
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
    std::optional<RowCache::Claim> claim;  // to encode it, or to wait
  };

  /// What became of an item that another, of this call or not, has encoded.
  [[nodiscard]] CacheUse use_of(const Item& item) const;
  void fail(std::size_t item, const Error& error);

  ItemView media_;
  std::span<Embedding> results_;
  std::vector<Item> items_;
  std::unordered_set<std::string> own_keys_;  // that this call encodes
  std::vector<std::size_t> to_encode_;
  std::vector<Found> found_;
};

}  // namespace fovea
