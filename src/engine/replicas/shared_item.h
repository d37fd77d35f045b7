#pragma once

#include <cstdint>
#include <deque>

#include "engine/replicas/replica_session.h"
#include "fovea/embedding.h"
#include "fovea/row_block.h"

namespace fovea {

/// An item that is encoded share by share, on several replicas or as its pixels come. The rows of a
/// share go to their place in the target of the item; what else is known of it is told to the
/// result at the end. Refers to what the item refers to.
class SharedItem {
 public:
  /// Fills in rows, width and dtype of the result, and makes memory for its rows.
  /// @param item may be a share itself; who keeps it has begun to store. @param width of its rows.
  /// @throws Error(kOutOfMemory).
  SharedItem(const TowerItem& item, std::int64_t width);
  SharedItem(const SharedItem&) = delete;
  SharedItem& operator=(const SharedItem&) = delete;

  /// A share for the tower. Its target stays valid while this object lives.
  /// @param prepared the item, or these units of it. @param share units of the item, or a part of
  /// one.
  [[nodiscard]] TowerItem add(const PreparedItem& prepared, const ItemShare& share);
  /// Takes back the shares that were added: their towers have ended without rows.
  void forget_shares() noexcept { parts_.clear(); }
  /// To be called when all shares that were added have begun: ends the store of their rows.
  void end_store();
  /// To be called when the rows of all shares are there.
  void finish();

 private:
  struct Part {
    Embedding known;  // of the share
    RowBlock block;   // where its rows go
  };

  Embedding& result_;
  RowTarget target_;
  RowCache::Claim* keep_;    // null: nobody keeps the rows
  RowCopy place_;            // of the rows of `item`
  std::int64_t first_unit_;  // of these
  std::int64_t unit_rows_;
  std::deque<Part> parts_;
};

}  // namespace fovea
