// The memory of decoders: a budget, and what earlier images were decoded into.
#include "engine/prepare/decode_budget.h"

#include <algorithm>
#include <new>
#include <optional>

namespace fovea {

namespace {

/// Less is as quick to get from malloc.
constexpr std::size_t kLeastSpareBytes = std::size_t{1} << 20;
constexpr std::size_t kMostSpares = 64;
/// Shares after which memory that none of them had a use for is released.
constexpr std::uint64_t kRecentShares = 32;

}  // namespace

DecodeBudget::Share DecodeBudget::take(std::size_t bytes) {
  Share share(*this, budget_.take(bytes));
  const std::lock_guard lock(mutex_);
  ++shares_;
  while (!spares_.empty() && (budget_.used() + spare_bytes_ > budget_.capacity() ||
                              shares_ - spares_.front().since > kRecentShares)) {
    (void)remove(0);
  }
  return share;
}

std::vector<std::uint8_t> DecodeBudget::remove(std::size_t spare) noexcept {
  std::vector<std::uint8_t> memory = std::move(spares_[spare].memory);
  spare_bytes_ -= memory.capacity();
  spares_.erase(spares_.begin() + static_cast<std::ptrdiff_t>(spare));
  return memory;
}

std::vector<std::uint8_t> DecodeBudget::Share::take_memory() {
  if (owner_ == nullptr) return {};
  const std::lock_guard lock(owner_->mutex_);
  const std::vector<Spare>& spares = owner_->spares_;
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < spares.size(); ++i) {
    const std::size_t size = spares[i].memory.capacity();
    if (size <= ticket_.bytes() && (!best || size >= spares[*best].memory.capacity())) best = i;
  }
  return best ? owner_->remove(*best) : std::vector<std::uint8_t>();
}

void DecodeBudget::Share::leave(std::vector<std::uint8_t> memory) noexcept {
  const std::size_t size = memory.capacity();
  if (owner_ == nullptr || size < kLeastSpareBytes || size > ticket_.bytes()) return;
  const std::lock_guard lock(owner_->mutex_);
  std::vector<Spare>& spares = owner_->spares_;
  if (spares.size() == kMostSpares) return;
  // The share gives up what the memory takes, so that both together stay what they were.
  try {
    spares.push_back({std::move(memory), owner_->shares_});
  } catch (const std::bad_alloc&) {  // NOLINT: no place to keep it
    return;
  }
  owner_->spare_bytes_ += size;
  ticket_.shrink(size);
}

std::size_t DecodeBudget::trim() noexcept {
  const std::lock_guard lock(mutex_);
  spares_.clear();
  return std::exchange(spare_bytes_, 0);
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
