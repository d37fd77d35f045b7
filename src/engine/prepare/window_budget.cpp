// Admission in order: what an item finds follows from the sizes before it, not from who was faster.
#include "engine/prepare/window_budget.h"

#include <algorithm>

#include "core/interrupt.h"

namespace fovea {

bool WindowBudget::take(std::size_t index, std::size_t bytes) {
  std::unique_lock lock(mutex_);
  wait_under_interrupt(changed_, lock, [&] { return num_settled_ >= index; });
  // More than the whole budget counts as all of it, and so fits where nothing else is.
  closed_ = closed_ || !held_.try_grow(std::min(bytes, budget_.capacity()));
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
