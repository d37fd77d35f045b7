#pragma once

#include <concepts>
#include <cstddef>
#include <span>

#include "engine/replicas/load_balance.h"
#include "fovea/media.h"
#include "fovea/planned_item.h"

namespace fovea {

/// All items of a call, or some of them and shares of them in any order, with the plans that they
/// came with. Refers to what it is made of.
class ItemView {
 public:
  template <class Items>
  requires std::convertible_to<const Items&, std::span<const MediaItem>> ItemView(
      const Items& items)
      : items_(items) {}  // NOLINT: items are a view of them
  template <class Items>
  requires std::convertible_to<const Items&, std::span<const PlannedItem>> ItemView(
      const Items& items)
      : planned_(items), is_planned_(true) {}  // NOLINT: as above
  /// @param pieces of items; those that are shared have a plan, which their units are of.
  ItemView(std::span<const PlannedItem> items, std::span<const ItemPiece> pieces) noexcept
      : planned_(items), pieces_(pieces), is_planned_(true), is_all_(false) {}

  /// Whether somebody has planned the items.
  [[nodiscard]] bool is_planned() const noexcept { return is_planned_; }
  [[nodiscard]] std::size_t size() const noexcept {
    if (!is_all_) return pieces_.size();
    return is_planned_ ? planned_.size() : items_.size();
  }
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }
  [[nodiscard]] const MediaItem& operator[](std::size_t i) const noexcept {
    return is_planned_ ? planned_[index(i)].media() : items_[index(i)];
  }
  /// What the item came with; null: nothing.
  [[nodiscard]] const PlannedItem::Plan* plan(std::size_t i) const noexcept {
    return is_planned_ ? planned_[index(i)].plan() : nullptr;
  }
  /// What of the item is wanted.
  [[nodiscard]] ItemShare share(std::size_t i) const noexcept {
    return is_all_ ? ItemShare{} : pieces_[i].share;
  }

 private:
  [[nodiscard]] std::size_t index(std::size_t i) const noexcept {
    return is_all_ ? i : pieces_[i].item;
  }

  std::span<const MediaItem> items_;      // or
  std::span<const PlannedItem> planned_;  // if is_planned_
  std::span<const ItemPiece> pieces_;
  bool is_planned_ = false;
  bool is_all_ = true;
};

}  // namespace fovea
