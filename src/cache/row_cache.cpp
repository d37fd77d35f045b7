// Who encodes, who waits, and what stays.
#include "cache/row_cache.h"

#include <utility>

#include "cache/item_facts.h"
#include "core/check.h"
#include "core/interrupt.h"

namespace fovea {

RowCache::RowCache(std::int64_t capacity_bytes, RowStore store)
    : store_(std::move(store)), books_(capacity_bytes) {}

CacheRequest RowCache::request_of(const std::string& id, const std::string& key,
                                  std::int64_t bytes) {
  return {id, {{key, PlaceholderRange(0, bytes)}}};
}

RowCache::Claim RowCache::claim(const std::string& key) {
  Claim claim(*this, key);  // before the lock, which its end takes
  const std::lock_guard lock(mutex_);
  ++counts_.queries;
  if (const auto found = entries_.find(key); found != entries_.end()) {
    claim.entry_ = found->second;
    CacheRequest holder = request_of(claim.id_, key, claim.entry_->bytes);
    FOVEA_CHECK(books_.lookup(holder, 0), kInternal, key, ": rows without an entry in the books");
    claim.holder_ = std::move(holder);
    claim.turn_ = Turn::kRead;
    ++counts_.hits;
    return claim;
  }
  auto place = flights_.find(key);
  if (place == flights_.end()) place = flights_.emplace(key, std::make_shared<Flight>()).first;
  Flight& flight = *place->second;
  if (flight.is_encoded) claim.turn_ = Turn::kWait;
  claim.flight_ = place->second;
  if (flight.is_encoded) flight.waiting.push_back(claim.id_);
  flight.is_encoded = true;
  return claim;
}

void RowCache::count_repeats(std::int64_t items) {
  const std::lock_guard lock(mutex_);
  counts_.queries += items;
  counts_.hits += items;
}

bool RowCache::reserve(const CacheRequest& claim, std::int64_t bytes) {
  if (bytes == 0) return false;
  // What was reserved for rows that did not come is there still, and nobody holds it.
  if (books_.lookup(claim, 0)) return true;
  const bool has_room = books_.make_room(claim, 0, books_.capacity());
  for (const std::string& key : books_.drain_evicted()) {
    counts_.evictions += static_cast<std::int64_t>(entries_.erase(key));
  }
  if (has_room) books_.allocate(claim, 0);
  return has_room;
}

void RowCache::keep(const CacheRequest& claim, Flight& flight) {
  const std::string& key = claim.items.front().key;
  for (const std::string& id : flight.waiting) {
    (void)books_.lookup(request_of(id, key, flight.entry->bytes), 0);
  }
  entries_[key] = flight.entry;
  flight.is_kept = true;
  books_.release(claim, 0);
}

void RowCache::end(const std::string& key, Flight& flight) {
  flight.is_over = true;
  flights_.erase(key);
  flight.changed.notify_all();
}

EncoderCacheStats RowCache::stats() const {
  const std::lock_guard lock(mutex_);
  EncoderCacheStats stats = counts_;
  stats.capacity_bytes = books_.capacity();
  stats.freeable_bytes = books_.num_freeable() - books_.num_free();
  stats.items = std::ssize(entries_);
  for (const auto& [key, entry] : entries_) {
    stats.bytes += entry->bytes;
    stats.rows += entry->item.rows;
  }
  for (const auto& [key, flight] : flights_) stats.waiting += std::ssize(flight->waiting);
  stats.host = {.capacity_bytes = stats.capacity_bytes,
                .bytes = stats.bytes,
                .items = stats.items,
                .hits = stats.hits,
                .misses = stats.queries - stats.hits,
                .evictions = stats.evictions};
  return stats;
}

RowCache::Claim::Claim(RowCache& cache, std::string key)
    : cache_(&cache), key_(std::move(key)), id_(std::to_string(cache.num_claims_++)) {}

RowCache::Claim::Claim(Claim&& other) noexcept
    : cache_(std::exchange(other.cache_, nullptr)),
      key_(std::move(other.key_)),
      id_(std::move(other.id_)),
      turn_(other.turn_),
      holder_(std::move(other.holder_)),
      flight_(std::move(other.flight_)),
      entry_(std::move(other.entry_)) {}

RowCache::Claim::~Claim() { end(); }

void RowCache::Claim::end() noexcept {
  RowCache* const cache = std::exchange(cache_, nullptr);
  if (cache == nullptr) return;
  const std::lock_guard lock(cache->mutex_);
  try {
    if (turn_ == Turn::kWait && flight_->is_kept) {  // it does not know yet that it holds the rows
      holder_ = request_of(id_, key_, flight_->entry->bytes);
    }
    if (holder_) cache->books_.release(*holder_, 0);
  } catch (...) {  // NOLINT: without memory to say so, the rows stay held
  }
  if (!flight_ || flight_->is_over) return;
  std::erase(flight_->waiting, id_);
  if (turn_ == Turn::kEncode) flight_->is_encoded = false;
  if (!flight_->is_encoded && flight_->waiting.empty()) cache->flights_.erase(key_);
  flight_->changed.notify_all();
}

void RowCache::Claim::wait() {
  std::unique_lock lock(cache_->mutex_);
  wait_under_interrupt(flight_->changed, lock,
                       [&] { return flight_->is_over || !flight_->is_encoded; });
  if (flight_->is_over) {
    if (flight_->is_kept) holder_ = request_of(id_, key_, flight_->entry->bytes);
    entry_ = flight_->entry;
    turn_ = entry_ ? Turn::kRead : Turn::kFailed;
    ++cache_->counts_.joins;
  } else {
    flight_->is_encoded = true;
    turn_ = Turn::kEncode;
  }
  std::erase(flight_->waiting, id_);
}

void RowCache::Claim::read(Embedding& out) {
  Embedding item = facts_of(entry_->item);
  item.data.resize(static_cast<std::size_t>(entry_->bytes));
  entry_->rows(item.data);
  item.name = std::move(out.name);
  item.times = out.times;
  out = std::move(item);
  end();
}

bool RowCache::Claim::publish(const Embedding& item) {
  const auto entry = std::make_shared<Entry>();
  entry->item = facts_of(item);
  entry->bytes = std::ssize(item.data);
  CacheRequest request = request_of(id_, key_, entry->bytes);
  {
    const std::lock_guard lock(cache_->mutex_);
    if (cache_->reserve(request, entry->bytes)) holder_ = request;
    if (!holder_ && flight_->waiting.empty()) {
      ++cache_->counts_.bypasses;
      cache_->end(key_, *flight_);
      cache_ = nullptr;
      return false;
    }
  }
  entry->rows = cache_->store_(item.data);
  const std::lock_guard lock(cache_->mutex_);
  flight_->entry = entry;
  if (holder_) cache_->keep(*holder_, *flight_);
  ++(holder_ ? cache_->counts_.misses : cache_->counts_.bypasses);
  cache_->end(key_, *flight_);
  cache_ = nullptr;
  return holder_.has_value();
}

void RowCache::Claim::fail(const Error& error) {
  const std::lock_guard lock(cache_->mutex_);
  flight_->error = error;
  ++cache_->counts_.misses;
  cache_->end(key_, *flight_);
  cache_ = nullptr;
}

}  // namespace fovea
