#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace fovea::serve {

/// Bytes that requests may hold together. Thread-safe.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::int64_t capacity) noexcept : capacity_(capacity) {}

  /// Room that is given back when the last copy of the pointer goes; null if there is not enough.
  /// The budget must outlive it.
  [[nodiscard]] std::shared_ptr<void> take(std::int64_t bytes);

  /// The same without a pointer. @return whether there is enough.
  [[nodiscard]] bool reserve(std::int64_t bytes) noexcept;
  void release(std::int64_t bytes) noexcept { used_ -= bytes; }

  [[nodiscard]] std::int64_t used() const noexcept { return used_; }
  [[nodiscard]] std::int64_t capacity() const noexcept { return capacity_; }

 private:
  std::int64_t capacity_;
  std::atomic<std::int64_t> used_ = 0;
};

}  // namespace fovea::serve
