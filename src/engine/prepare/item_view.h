#pragma once

#include <concepts>
#include <cstddef>
#include <span>

#include "fovea/media.h"

namespace fovea {

/// All items of a call, or some of them in any order. Refers to what it is made of.
class ItemView {
 public:
  template <class Items>
  requires std::convertible_to<const Items&, std::span<const MediaItem>> ItemView(
      const Items& items)
      : items_(items) {}  // NOLINT: items are a view of them
  /// @param which indices of items.
  ItemView(std::span<const MediaItem> items, std::span<const std::size_t> which) noexcept
      : items_(items), which_(which), is_all_(false) {}

  [[nodiscard]] std::size_t size() const noexcept {
    return is_all_ ? items_.size() : which_.size();
  }
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }
  [[nodiscard]] const MediaItem& operator[](std::size_t i) const noexcept {
    return items_[is_all_ ? i : which_[i]];
  }

 private:
  std::span<const MediaItem> items_;
  std::span<const std::size_t> which_;
  bool is_all_ = true;
};

}  // namespace fovea
