#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>

namespace fovea::serve {

/// How many jobs there are, and since when there have been any: who asks for the one never sees it
/// without the other. Thread-safe.
class JobCount {
 public:
  using Time = std::chrono::steady_clock::time_point;

  void add() noexcept {
    const std::lock_guard lock(mutex_);
    if (jobs_++ == 0) busy_since_ = std::chrono::steady_clock::now();
  }
  void remove() noexcept {
    const std::lock_guard lock(mutex_);
    --jobs_;
  }
  /// When the number last left 0; absent: there are none.
  [[nodiscard]] std::optional<Time> busy_since() const noexcept {
    const std::lock_guard lock(mutex_);
    return jobs_ > 0 ? std::optional(busy_since_) : std::nullopt;
  }

 private:
  mutable std::mutex mutex_;  // guards what follows
  std::int64_t jobs_ = 0;
  Time busy_since_{};
};

}  // namespace fovea::serve
