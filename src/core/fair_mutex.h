#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "core/interrupt.h"

namespace fovea {

/// A mutex that says who is next: of the threads that wait, the one with the least work, but none
/// is overtaken more than 8 times; among equals the first to come. With std::mutex, a thread that
/// unlocks and locks again at once, such as background work, can starve all others. For
/// std::lock_guard and std::unique_lock, with no work of its own.
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
    waiting_.push_back(&self);
    wait(lock, self);
  }
  /// For the thread that has the mutex: unlocks and locks again if somebody else is next.
  /// @param work that this thread still has. @throws as lock(): the mutex is unlocked then.
  void give_way(std::int64_t work) {
    std::unique_lock lock(mutex_);
    if (waiting_.empty()) return;
    Waiter self{.work = work};
    waiting_.push_back(&self);
    choose_next();
    if (self.is_next) return;
    turn_.notify_all();
    wait(lock, self);
  }
  void unlock() {
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.empty()) {
        held_ = false;
        return;
      }
      choose_next();
    }
    turn_.notify_all();
  }
  /// Number of threads that are waiting for their turn.
  [[nodiscard]] std::size_t num_waiting() const {
    const std::lock_guard lock(mutex_);
    return waiting_.size();
  }

 private:
  struct Waiter {
    std::int64_t work = 0;
    int overtaken = 0;
    bool is_next = false;
  };

  void wait(std::unique_lock<std::mutex>& lock, const Waiter& self) {
    try {
      wait_under_interrupt(turn_, lock, [&] { return self.is_next; });
    } catch (...) {
      std::erase(waiting_, &self);
      throw;
    }
  }

  void choose_next() {
    auto next = std::ranges::find(waiting_, kMostOvertakings, &Waiter::overtaken);
    if (next == waiting_.end()) next = std::ranges::min_element(waiting_, {}, &Waiter::work);
    std::for_each(waiting_.begin(), next, [](Waiter* earlier) { ++earlier->overtaken; });
    (*next)->is_next = true;
    waiting_.erase(next);
  }

  mutable std::mutex mutex_;
  std::condition_variable turn_;
  bool held_ = false;             // and stays so from a thread to the next
  std::vector<Waiter*> waiting_;  // in order of arrival
};

}  // namespace fovea
