#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/replicas/replica_session.h"
#include "fovea/embedding.h"
#include "fovea/row_block.h"

namespace fovea {

/// An item of which several replicas encode a share each. The rows of a share go to their place in
/// the target of the item; what else is known of it is told to the result at the end. Refers to
/// what the item refers to.
class SharedItem {
 public:
  /// Fills in rows, width and dtype of the result, and makes memory for its rows.
  /// @param item whole, and kept by nobody. @param width of its rows.
  /// @param pieces its shares. @throws Error(kOutOfMemory).
  SharedItem(const TowerItem& item, std::int64_t width, std::span<const ItemShare> pieces);
  SharedItem(const SharedItem&) = delete;
  SharedItem& operator=(const SharedItem&) = delete;

  /// A share for the tower each; valid while this object lives.
  [[nodiscard]] std::span<const TowerItem> shares() const noexcept { return shares_; }
  /// To be called when the rows of all shares are there.
  void finish();

 private:
  Embedding& result_;
  std::vector<Embedding> parts_;  // what is known of each share
  std::vector<RowBlock> blocks_;  // where its rows go
  std::vector<TowerItem> shares_;
};

}  // namespace fovea
