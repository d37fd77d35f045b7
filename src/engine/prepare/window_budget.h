#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <vector>

#include "core/budget.h"

namespace fovea {

/// Bytes of prepared pixels that the items of one window may hold together. Items are admitted in
/// their order, whichever is ready first: those before the first that does not fit. Thread-safe.
class WindowBudget {
 public:
  WindowBudget(std::size_t total_bytes, std::size_t num_items)
      : budget_(total_bytes), settled_(num_items) {}
  WindowBudget(const WindowBudget&) = delete;
  WindowBudget& operator=(const WindowBudget&) = delete;

  /// The place of one item. Who waits at a later one waits until this one has its bytes or is gone.
  class Place {
   public:
    /// Items must come to their places in ascending order, as the tasks of a ThreadPool do.
    Place(WindowBudget& budget, std::size_t index) : budget_(budget), index_(index) {}
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    ~Place() { budget_.settle(index_); }

    /// Waits for the items before. Whether this one fits, too; the first that takes any does in
    /// any case. @throws as check_interrupt while it waits.
    [[nodiscard]] bool take(std::size_t bytes) { return budget_.take(index_, bytes); }
    /// Whether an item before did not fit: nor does this one.
    [[nodiscard]] bool is_too_late() const { return budget_.is_closed(); }

   private:
    WindowBudget& budget_;
    std::size_t index_;
  };

 private:
  [[nodiscard]] bool take(std::size_t index, std::size_t bytes);
  [[nodiscard]] bool is_closed() const;
  void settle(std::size_t index) noexcept;

  Budget budget_;
  Budget::Ticket held_{budget_};  // by all items together, until the window ends
  mutable std::mutex mutex_;      // guards held_ and what follows
  std::condition_variable changed_;
  std::vector<bool> settled_;    // of each item: it takes nothing from now on
  std::size_t num_settled_ = 0;  // those in front of the first that is not
  bool closed_ = false;
};

/// The budget of the windows of a call, for all replicas together: 128 MiB, or 32 MiB per thread
/// that decodes if that is more. 64 images of 640 x 480 or 42 of 1024 x 1024 pixels are below it.
[[nodiscard]] std::size_t window_budget_bytes(int num_threads);

}  // namespace fovea
