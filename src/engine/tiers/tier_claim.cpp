// Who encodes, who waits, and where the rows go.
#include <utility>

#include "cache/item_facts.h"
#include "core/interrupt.h"
#include "engine/tiers/tier_cache.h"

namespace fovea {

TierCache::Claim::Claim(Claim&& other) noexcept
    : cache_(std::exchange(other.cache_, nullptr)),
      key_(std::move(other.key_)),
      turn_(other.turn_),
      flight_(std::move(other.flight_)),
      rows_(std::move(other.rows_)),
      error_(std::move(other.error_)),
      is_kept_(other.is_kept_) {}

void TierCache::Claim::end() noexcept {
  TierCache* const cache = std::exchange(cache_, nullptr);
  if (cache == nullptr || !flight_) return;
  const std::lock_guard lock(cache->mutex_);
  if (turn_ == Turn::kWait) --flight_->waiting;
  if (flight_->is_over) return;
  if (turn_ == Turn::kEncode) flight_->is_encoded = false;
  if (!flight_->is_encoded && flight_->waiting == 0) cache->flights_.erase(key_);
  flight_->changed.notify_all();
}

void TierCache::Claim::wait(bool same_call) {
  std::unique_lock lock(cache_->mutex_);
  wait_under_interrupt(flight_->changed, lock,
                       [&] { return flight_->is_over || !flight_->is_encoded; });
  if (!flight_->is_over) {
    flight_->is_encoded = true;
    turn_ = Turn::kEncode;
  } else {
    rows_ = flight_->rows;
    error_ = flight_->error;
    turn_ = rows_ ? Turn::kRead : Turn::kFailed;
    ++(same_call ? cache_->counts_.hits : cache_->counts_.joins);
  }
  --flight_->waiting;
  if (turn_ != Turn::kEncode) flight_.reset();  // it holds the rows, too
}

void TierCache::Claim::describe(const Embedding& item) { rows_ = Rows{.facts = facts_of(item)}; }

TierCache::Tier* TierCache::Claim::reserve(Device& device, std::size_t bytes) {
  const std::lock_guard lock(cache_->mutex_);
  Tier* tier = &cache_->tier_of(device);
  rows_->slot = cache_->make_room(*tier, bytes);
  if (!rows_->slot && cache_->host_) {
    tier = &*cache_->host_;
    rows_->slot = cache_->make_room(*tier, bytes);
  }
  if (!rows_->slot) ++cache_->counts_.bypasses;
  return rows_->slot ? tier : nullptr;
}

void TierCache::Claim::store(Device& device, Stream& queue, const TensorView& rows) {
  rows_->facts.rows = rows.shape[0];
  rows_->facts.width = rows.shape[1];
  rows_->dtype = rows.dtype;
  rows_->shape = rows.shape;
  if (Tier* const tier = reserve(device, rows.bytes())) {
    RowSlot& slot = *rows_->slot;
    slot.begin_write(queue);
    queue.copy(slot.data(), rows.data, rows.bytes());
    slot.end_write(mark(device, queue));
    const std::lock_guard lock(cache_->mutex_);
    cache_->keep(key_, *rows_, *tier);
    flight_->rows = rows_;
    cache_->end(key_, *flight_);
    ++cache_->counts_.misses;
    is_kept_ = true;
  }
  end();
  flight_.reset();  // it holds the rows, too
  rows_.reset();
}

void TierCache::Claim::fail(const Error& error) {
  if (cache_ == nullptr) return;
  {
    const std::lock_guard lock(cache_->mutex_);
    flight_->error = error;
    ++cache_->counts_.misses;
    cache_->end(key_, *flight_);
  }
  end();
}

void TierCache::Claim::restore(Device& device, Stream& queue) {
  if (slot().device() != nullptr) return;
  const std::lock_guard lock(cache_->mutex_);
  const auto found = cache_->entries_.find(key_);
  if (found == cache_->entries_.end()) return;  // it was evicted: this claim has its last rows
  Entry& entry = found->second;
  if (entry.rows.slot == rows_->slot) {
    Tier& tier = cache_->tier_of(device);
    const std::shared_ptr<RowSlot> to = cache_->make_room(tier, slot().bytes());
    if (to) move(entry, tier, to, queue, tier.marks);
  }
  if (entry.rows.slot->device() == &device) rows_->slot = entry.rows.slot;
}

RowMark TierCache::Claim::mark(const Device& device, Stream& queue) const {
  return cache_->tier_of(device).marks.after(queue);
}

}  // namespace fovea
