// A queue for memory. Who waits looks at its interrupt meanwhile, which wakes nobody by itself.
#include "engine/prepare/decode_budget.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <optional>

#include "core/interrupt.h"

namespace fovea {

namespace {

/// Less is as quick to get from malloc.
constexpr std::size_t kLeastSpareBytes = std::size_t{1} << 20;
constexpr std::size_t kMostSpares = 64;
/// Shares after which memory that none of them had a use for is released.
constexpr std::uint64_t kRecentShares = 32;

}  // namespace

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
    while (!changed_.wait_for(lock, kLook, is_next)) check_interrupt_of_wait();
  } catch (...) {
    std::erase(waiting_, ticket);
    changed_.notify_all();
    throw;
  }
  waiting_.pop_front();
  used_bytes_ += bytes;
  while (!spares_.empty() && (used_bytes_ + spare_bytes_ > total_bytes_ ||
                              next_ticket_ - spares_.front().since > kRecentShares)) {
    (void)remove(0);
  }
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

std::vector<std::uint8_t> DecodeBudget::remove(std::size_t spare) noexcept {
  std::vector<std::uint8_t> memory = std::move(spares_[spare].memory);
  spare_bytes_ -= memory.capacity();
  spares_.erase(spares_.begin() + static_cast<std::ptrdiff_t>(spare));
  return memory;
}

std::vector<std::uint8_t> DecodeBudget::Share::take_memory() {
  if (budget_ == nullptr) return {};
  const std::lock_guard lock(budget_->mutex_);
  const std::vector<Spare>& spares = budget_->spares_;
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < spares.size(); ++i) {
    const std::size_t size = spares[i].memory.capacity();
    if (size <= bytes_ && (!best || size >= spares[*best].memory.capacity())) best = i;
  }
  return best ? budget_->remove(*best) : std::vector<std::uint8_t>();
}

void DecodeBudget::Share::leave(std::vector<std::uint8_t> memory) noexcept {
  const std::size_t size = memory.capacity();
  if (budget_ == nullptr || size < kLeastSpareBytes || size > bytes_) return;
  const std::lock_guard lock(budget_->mutex_);
  std::vector<Spare>& spares = budget_->spares_;
  if (spares.size() == kMostSpares) return;
  // The share gives up what the memory takes, so that both together stay what they were.
  try {
    spares.push_back({std::move(memory), budget_->next_ticket_});
  } catch (const std::bad_alloc&) {  // NOLINT: no place to keep it
    return;
  }
  bytes_ -= size;
  budget_->used_bytes_ -= size;
  budget_->spare_bytes_ += size;
}

std::size_t DecodeBudget::trim() noexcept {
  const std::lock_guard lock(mutex_);
  spares_.clear();
  return std::exchange(spare_bytes_, 0);
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
