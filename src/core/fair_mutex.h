#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace fovea {

/// A mutex that serves threads in order of arrival. With std::mutex, a thread that unlocks and
/// locks again at once, such as background work, can starve all others. For std::lock_guard.
class FairMutex {
 public:
  void lock() {
    std::unique_lock lock(mutex_);
    const std::uint64_t ticket = next_++;
    turn_.wait(lock, [&] { return serving_ == ticket; });
  }
  void unlock() {
    {
      const std::lock_guard lock(mutex_);
      ++serving_;
    }
    turn_.notify_all();
  }
  /// Number of threads that are waiting for their turn.
  [[nodiscard]] std::uint64_t num_waiting() const {
    const std::lock_guard lock(mutex_);
    return next_ == serving_ ? 0 : next_ - serving_ - 1;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable turn_;
  std::uint64_t next_ = 0;
  std::uint64_t serving_ = 0;
};

}  // namespace fovea
