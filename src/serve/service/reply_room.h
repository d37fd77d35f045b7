#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>

#include "core/budget.h"
#include "fovea/planned_item.h"

namespace fovea::serve {

/// Memory for the rows of a request and what is made of them, of the budget of all requests; given
/// back in the destructor. Thread-safe.
class ReplyRoom {
 public:
  /// Takes room for rows as the plans of the items tell them, and for each video in a container,
  /// whose plan does not, an estimate of 64 MiB. Items that will be refused have none.
  /// @param budget must outlive this object. @param row_bytes of a row and what is made of it.
  /// @throws ApiError(422, "image_too_small").
  ReplyRoom(Budget& budget, double row_bytes, std::span<const PlannedItem> items);

  /// Takes room for so many rows of an item, in place of its estimate or of what it took before.
  /// @return whether there is.
  [[nodiscard]] bool take(const MediaItem& item, std::int64_t rows);

  /// Whether an item has no more than an estimate so far, or none.
  [[nodiscard]] bool is_estimate() const noexcept { return is_estimate_; }
  /// Whether there was no room for something.
  [[nodiscard]] bool is_refused() const;
  /// Bytes that would have been enough for it and all before.
  [[nodiscard]] std::size_t wanted() const;

 private:
  const double row_bytes_;
  bool is_estimate_ = false;
  mutable std::mutex mutex_;  // guards what follows
  std::optional<Budget::Ticket> ticket_;
  std::map<const MediaItem*, std::size_t> taken_;  // of items without a plan
  std::size_t wanted_ = 0;
  bool is_refused_ = false;  // by take()
};

}  // namespace fovea::serve
