#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "cache/row_cache.h"
#include "engine/cached/item_key.h"
#include "engine/item_view.h"
#include "fovea/engine.h"

namespace fovea {

/// A call of encode() that asks the encoder cache for its items: which of them it has to encode,
/// where the rows of the others come from, and who waits for those that it encodes. Items of equal
/// keys are one to the cache. A call that ends early leaves what it has not encoded to those who
/// wait. Not thread-safe.
class CachedCall {
 public:
  /// Fills in the results of items that are in the cache.
  /// @param keys of the items; absent: the item is encoded, and the cache is not asked.
  /// All but the keys must outlive this object.
  CachedCall(RowCache& cache, std::vector<std::optional<ItemKey>> keys, ItemView media,
             std::span<Embedding> results);

  /// Indices of the items that this call has to encode, ascending.
  [[nodiscard]] const std::vector<std::size_t>& to_encode() const noexcept { return to_encode_; }
  /// Takes the result of an item of to_encode(), or of one that wait_for_others() has returned.
  void encoded(std::size_t item);
  /// Waits until the results of all other items are there.
  /// @return an item that another call has given up, to be encoded now; call again after that.
  /// Absent: all are there.
  /// @throws Error of an item that failed elsewhere unless `on_error` is kSkip; as check_interrupt.
  [[nodiscard]] std::optional<std::size_t> wait_for_others(OnError on_error);
  /// Tells those who wait why this call ends early, if it is the fault of what they wait for.
  void failed(const Error& error);

 private:
  /// Items of one key.
  struct Group {
    ItemKey key;
    std::vector<std::size_t> items;
    std::optional<RowCache::Claim> claim;  // until the results are there
  };

  void group(std::vector<std::optional<ItemKey>> keys);
  void read(Group& group, CacheUse use);
  void fail(Group& group, const Error& error);
  /// Copies the result of the first item of a group to the others.
  void repeat(const Group& group);

  RowCache& cache_;
  ItemView media_;
  std::span<Embedding> results_;
  std::vector<Group> groups_;
  std::vector<std::optional<std::size_t>> group_of_;  // each item
  std::vector<std::size_t> to_encode_;
};

}  // namespace fovea
