#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "core/interrupt.h"

namespace fovea {

/// A mutex that says who is next: of the threads that wait, the one with the least work, but none
/// is overtaken more than 8 times; among equals the first to come. With std::mutex, a thread that
/// unlocks and locks again at once, such as background work, can starve all others. For
/// std::lock_guard and std::unique_lock, with no work of its own. Allocates nothing.
class FairMutex {
 public:
  static constexpr int kMostOvertakings = 8;

  /// @param work that the thread is here for, in any unit; it may unlock and come again for the
  /// rest.
  /// @throws Error(kCancelled) or Error(kDeadline) if the interrupt of this thread ends its wait.
  void lock(std::int64_t work = 0) {
    std::unique_lock lock(mutex_);
    if (!held_) {
      held_ = true;
      return;
    }
    Waiter self{.work = work};
    append(self);
    wait(lock, self);
  }
  /// For the thread that has the mutex: unlocks and locks again if another thread is next.
  /// @param work that this thread still has. @throws as lock(): the mutex is unlocked then.
  void give_way(std::int64_t work) {
    std::unique_lock lock(mutex_);
    if (first_ == nullptr) return;
    Waiter self{.work = work};
    append(self);
    choose_next();
    if (self.is_next) return;
    turn_.notify_all();
    wait(lock, self);
  }
  void unlock() {
    {
      const std::lock_guard lock(mutex_);
      if (first_ == nullptr) {
        held_ = false;
        return;
      }
      choose_next();
    }
    turn_.notify_all();
  }
  /// Number of threads that are waiting for their turn. @param least_work that they have.
  [[nodiscard]] std::size_t num_waiting(std::int64_t least_work = 0) const {
    const std::lock_guard lock(mutex_);
    std::size_t count = 0;
    for (const Waiter* one = first_; one != nullptr; one = one->behind) {
      if (one->work >= least_work) ++count;
    }
    return count;
  }

 private:
  struct Waiter {
    std::int64_t work = 0;
    int overtaken = 0;
    bool is_next = false;
    Waiter* behind = nullptr;  // who came next
  };

  void wait(std::unique_lock<std::mutex>& lock, const Waiter& self) {
    try {
      wait_under_interrupt(turn_, lock, [&] { return self.is_next; });
    } catch (...) {
      remove(self);
      throw;
    }
  }

  void append(Waiter& self) noexcept {
    Waiter** end = &first_;
    while (*end != nullptr) end = &(*end)->behind;
    *end = &self;
  }
  void remove(const Waiter& self) noexcept {
    Waiter** at = &first_;
    while (*at != nullptr && *at != &self) at = &(*at)->behind;
    if (*at != nullptr) *at = self.behind;
  }

  void choose_next() noexcept {
    Waiter* next = first_;
    for (Waiter* one = first_; one != nullptr; one = one->behind) {
      if (one->work < next->work) next = one;
      if (one->overtaken < kMostOvertakings) continue;
      next = one;
      break;
    }
    for (Waiter* one = first_; one != next; one = one->behind) ++one->overtaken;
    next->is_next = true;
    remove(*next);
  }

  mutable std::mutex mutex_;
  std::condition_variable turn_;
  bool held_ = false;        // and stays so from a thread to the next
  Waiter* first_ = nullptr;  // of those that wait, in order of arrival; each on its stack
};

}  // namespace fovea
