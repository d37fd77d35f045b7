// A queue for memory. Who waits looks at its interrupt meanwhile, which wakes nobody by itself.
#include "engine/prepare/decode_budget.h"

#include <algorithm>
#include <chrono>

#include "core/interrupt.h"

namespace fovea {

DecodeBudget::Share DecodeBudget::take(std::size_t bytes) {
  constexpr std::chrono::milliseconds kLook{10};
  std::unique_lock lock(mutex_);
  const std::uint64_t ticket = next_ticket_++;
  waiting_.push_back(ticket);
  const auto is_next = [&] {
    const std::size_t free_bytes = total_bytes_ - std::min(used_bytes_, total_bytes_);
    return waiting_.front() == ticket && (used_bytes_ == 0 || bytes <= free_bytes);
  };
  try {
    while (!changed_.wait_for(lock, kLook, is_next)) check_interrupt();
  } catch (...) {
    std::erase(waiting_, ticket);
    changed_.notify_all();
    throw;
  }
  waiting_.pop_front();
  used_bytes_ += bytes;
  changed_.notify_all();  // the next one may fit, too
  return {*this, bytes};
}

void DecodeBudget::give_back(std::size_t bytes) noexcept {
  {
    const std::lock_guard lock(mutex_);
    used_bytes_ -= bytes;
  }
  changed_.notify_all();
}

std::size_t DecodeBudget::num_waiting() const {
  const std::lock_guard lock(mutex_);
  return waiting_.size();
}

std::size_t decode_budget_bytes(const MediaLimits& limits, int num_threads) {
  constexpr std::size_t kLeast = std::size_t{448} << 20;
  constexpr std::size_t kPerThread = std::size_t{32} << 20;
  const std::size_t automatic =
      std::max(kLeast, kPerThread * static_cast<std::size_t>(num_threads));
  const std::size_t wanted = limits.max_decode_bytes == 0 ? automatic : limits.max_decode_bytes;
  return std::max(wanted, limits.max_item_bytes);
}

}  // namespace fovea
