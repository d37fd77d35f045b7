// Who encodes, who waits, and where the rows go.
#include <algorithm>
#include <new>
#include <utility>

#include "core/interrupt.h"
#include "rows/row_cache.h"

namespace fovea {

namespace {

/// An item without its rows, and without what differs between items of equal content.
Embedding facts_of(const Embedding& item) {
  Embedding facts;
  facts.modality = item.modality;
  facts.rows = item.rows;
  facts.width = item.width;
  facts.dtype = item.dtype;
  facts.grid_thw = item.grid_thw;
  facts.retained = item.retained;
  facts.timestamps = item.timestamps;
  facts.source_width_px = item.source_width_px;
  facts.source_height_px = item.source_height_px;
  facts.num_frames = item.num_frames;
  facts.resized_width_px = item.resized_width_px;
  facts.resized_height_px = item.resized_height_px;
  return facts;
}

}  // namespace

RowCache::Claim::Claim(Claim&& other) noexcept
    : cache_(std::exchange(other.cache_, nullptr)),
      key_(std::move(other.key_)),
      call_(other.call_),
      turn_(other.turn_),
      use_(other.use_),
      flight_(std::move(other.flight_)),
      rows_(std::move(other.rows_)),
      place_(std::move(other.place_)),
      error_(std::move(other.error_)),
      is_pinned_(other.is_pinned_) {}

void RowCache::Claim::end() noexcept {
  RowCache* const cache = std::exchange(cache_, nullptr);
  if (cache == nullptr) return;
  const std::lock_guard lock(cache->mutex_);
  if (flight_) {
    if (turn_ == Turn::kWait) {
      --flight_->waiting;
      is_pinned_ = flight_->is_kept;
    }
    if (!flight_->is_over()) {
      if (turn_ == Turn::kEncode) flight_->is_encoded = false;
      if (!flight_->is_encoded && flight_->waiting == 0) cache->flights_.erase(key_);
      flight_->changed.notify_all();
    }
  }
  // The rows of an entry without pins are nobody's: evicting it frees their slot.
  flight_.reset();
  rows_.reset();
  place_ = {};
  for (Tier& tier : cache->tiers_) {
    if (is_pinned_ && tier.entries.unpin(key_) != nullptr) break;
  }
}

void RowCache::Claim::wait() {
  std::unique_lock lock(cache_->mutex_);
  wait_under_interrupt(flight_->changed, lock,
                       [&] { return flight_->is_over() || !flight_->is_encoded; });
  if (!flight_->is_over()) {
    flight_->is_encoded = true;
    flight_->call = call_;
    --flight_->waiting;
    turn_ = Turn::kEncode;
    return;
  }
  rows_ = flight_->rows;
  error_ = flight_->error;
  --flight_->waiting;
  turn_ = rows_ ? Turn::kRead : Turn::kFailed;
  is_pinned_ = flight_->is_kept;
  const bool same_call = call_ != nullptr && flight_->call == call_;
  use_ = same_call ? CacheUse::kHit : CacheUse::kJoin;
  ++(same_call ? cache_->counts_.hits : cache_->counts_.joins);
  flight_.reset();  // it holds the rows, too
}

void RowCache::Claim::describe(const Embedding& item) { rows_ = Rows{.facts = facts_of(item)}; }

std::shared_ptr<RowSlot> RowCache::Claim::slot_for_others(Device& device, std::size_t bytes) const {
  {
    const std::lock_guard lock(cache_->mutex_);
    if (bytes == 0 || flight_->waiting == 0) return nullptr;
  }
  try {
    return slot_of_its_own(device.allocate_host(RowArena::rounded(bytes)), bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kOutOfMemory) throw;
    return nullptr;
  }
}

void RowCache::Claim::store(Device& device, Stream& queue, const TensorView& rows) {
  begin_store(device, rows.shape[0], rows.shape[1], rows.dtype);
  store_part(device, queue, rows, 0);
  end_store();
}

bool RowCache::Claim::stores_on_host() const noexcept {
  return std::ranges::all_of(cache_->tiers_, [](const Tier& tier) {
    return tier.arena.device() == nullptr || tier.arena.capacity() == 0;
  });
}

void RowCache::Claim::begin_store(Device& device, std::int64_t rows, std::int64_t width,
                                  DType dtype) {
  rows_->facts.rows = rows;
  rows_->facts.width = width;
  rows_->dtype = dtype;
  const std::size_t bytes = static_cast<std::size_t>(rows * width) * size_of(dtype);
  place_ = cache_->reserve({&cache_->tier_of(device), &cache_->host()}, bytes);
  if (!place_.slot) place_.slot = slot_for_others(device, bytes);
}

void RowCache::Claim::store_part(Device& device, Stream& queue, const ConstTensorView& rows,
                                 std::int64_t first) const {
  if (!place_.slot) return;
  const auto before = static_cast<std::size_t>(first * rows.shape[1]) * size_of(rows.dtype);
  place_.slot->begin_write(queue);
  queue.copy(place_.slot->data() + before, rows.data, rows.bytes());
  place_.slot->end_write(mark(device, queue));
}

void RowCache::Claim::end_store() {
  Place place = std::exchange(place_, {});
  const bool is_kept = place.tier != nullptr;
  if (is_kept) use_ = CacheUse::kMiss;
  {
    const std::lock_guard lock(cache_->mutex_);
    ++(is_kept ? cache_->counts_.misses : cache_->counts_.bypasses);
    if (place.slot) {
      rows_->slot = std::move(place.slot);
      if (is_kept) {
        place.tier->entries.put(key_, *rows_, cost_of(rows_->slot->bytes()));
        place.tier->entries.pin(key_, flight_->waiting);
      }
      flight_->is_kept = is_kept;
      flight_->rows = std::move(rows_);
      cache_->end(key_, *flight_);
    }
  }
  end();
}

bool RowCache::Claim::fill(Device& device, Stream& queue, const Embedding& item,
                           const ConstTensorView& rows) {
  place_ = cache_->reserve({&cache_->host(), &cache_->tier_of(device)}, rows.bytes());
  if (!place_.slot) return false;
  describe(item);
  rows_->facts.rows = rows.shape[0];
  rows_->facts.width = rows.shape[1];
  rows_->dtype = rows.dtype;
  store_part(device, queue, rows, 0);
  queue.synchronize();  // the caller's memory is free again
  const Place place = std::exchange(place_, {});
  rows_->slot = place.slot;
  std::optional<Rows> for_others = rows_;
  const std::lock_guard lock(cache_->mutex_);
  place.tier->entries.put(key_, *rows_, cost_of(place.slot->bytes()));
  place.tier->entries.pin(key_, flight_->waiting + 1);  // from here on nothing needs memory
  flight_->is_kept = is_pinned_ = true;
  flight_->rows = std::move(for_others);
  cache_->end(key_, *flight_);
  flight_.reset();
  ++cache_->counts_.hits;
  turn_ = Turn::kRead;
  use_ = CacheUse::kHit;
  return true;
}

void RowCache::Claim::fail(const Error& error) {
  use_ = CacheUse::kMiss;
  if (cache_ == nullptr) return;
  {
    const std::lock_guard lock(cache_->mutex_);
    flight_->error = error;
    ++cache_->counts_.misses;
    cache_->end(key_, *flight_);
  }
  end();
}

void RowCache::Claim::bypass() {
  if (cache_ == nullptr) return;
  {
    const std::lock_guard lock(cache_->mutex_);
    ++cache_->counts_.bypasses;
  }
  end();
}

void RowCache::Claim::restore(Device& device, Stream& queue) {
  const std::lock_guard lock(cache_->mutex_);
  Tier& tier = cache_->tier_of(device);
  Tier& host = cache_->host();
  if (slot().device() != nullptr || !is_pinned_) return;
  if (host.entries.find(key_) != nullptr) {
    const Place to{&tier, cache_->make_room(tier, slot().bytes())};
    if (to.slot) move(key_, host, to, queue, *tier.marks);
  }
  const Entries::Entry* const entry = tier.entries.find(key_);
  if (entry != nullptr) rows_->slot = entry->value.slot;
}

RowMark RowCache::Claim::mark(const Device& device, Stream& queue) const {
  return cache_->tier_of(device).marks->after(queue);
}

}  // namespace fovea
