#pragma once

#include <utility>

#include "engine/call.h"
#include "engine/item.h"
#include "rows/row_cache.h"
#include "rows/shared/shared_rows.h"

namespace fovea {

/// Which items of a call it has to encode, and who waits for those: all, but for those whose key
/// the encoder cache knows or is about to. The rows of these stand in for those of the tower, so
/// that all that is done to those is done to them. A call that ends early leaves what it has not
/// encoded to those who wait. Not thread-safe.
class CachedCall {
 public:
  /// Claims the items that have a key and have not failed.
  /// @param cache null if no item has a key. Both must outlive this object.
  CachedCall(RowCache* cache, Call& call);

  /// Looks for the items that are to be encoded in the place that several processes share. Those
  /// that are there, and have room in the cache, are found. @param device any of the engine.
  /// @throws as check_interrupt; Error of the device.
  void look_in(SharedRows& shared, Device& device);

  /// The items that this call has to encode next.
  [[nodiscard]] const Selection& to_encode() const noexcept { return to_encode_; }
  /// The items found since the last call, with a claim to read them.
  [[nodiscard]] Selection take_found() { return std::exchange(found_, {}); }
  /// What stores the rows of an item of to_encode(), as its result describes it; null if they are
  /// not to be kept: they have no key, or are no longer those of a file that it names.
  [[nodiscard]] static RowCache::Claim* keeper(Item& item);
  /// Takes the result of an item: one that failed, or was not stored, is none that others get.
  static void encoded(Item& item);
  /// Waits for items that others, or this call, have encoded. Fills to_encode(), with an item that
  /// another call has given up, or take_found().
  /// @return whether there was anything left.
  /// @throws Error of an item that failed elsewhere unless the call skips it; as check_interrupt.
  [[nodiscard]] bool wait_for_others();
  /// Tells those who wait why this call ends early, if it is the fault of what they wait for.
  void failed(const Error& error);

 private:
  /// Sorts an item by the turn of its claim.
  void sort(Item& item);
  void fail(Item& item);

  Call& call_;
  Selection to_encode_;
  Selection found_;
};

}  // namespace fovea
