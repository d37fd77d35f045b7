// Admission in order: what an item finds follows from the sizes before it, not from who was faster.
#include "engine/prepare/window_budget.h"

#include <algorithm>
#include <chrono>

#include "core/interrupt.h"

namespace fovea {

bool WindowBudget::take(std::size_t index, std::size_t bytes) {
  constexpr std::chrono::milliseconds kLook{10};
  std::unique_lock lock(mutex_);
  const auto is_next = [&] { return num_settled_ >= index; };
  while (!changed_.wait_for(lock, kLook, is_next)) check_interrupt_of_wait();
  const std::size_t free_bytes = total_bytes_ - std::min(used_bytes_, total_bytes_);
  if (used_bytes_ > 0 && bytes > free_bytes) closed_ = true;
  if (!closed_) used_bytes_ += bytes;
  const bool fits = !closed_;
  lock.unlock();
  settle(index);
  return fits;
}

bool WindowBudget::is_closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

void WindowBudget::settle(std::size_t index) noexcept {
  {
    const std::lock_guard lock(mutex_);
    settled_[index] = true;
    while (num_settled_ < settled_.size() && settled_[num_settled_]) ++num_settled_;
  }
  changed_.notify_all();
}

std::size_t window_budget_bytes(int num_threads) {
  constexpr std::size_t kLeast = std::size_t{128} << 20;
  constexpr std::size_t kPerThread = std::size_t{32} << 20;
  return std::max(kLeast, kPerThread * static_cast<std::size_t>(num_threads));
}

}  // namespace fovea
