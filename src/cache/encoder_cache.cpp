// Bookkeeping of the encoder cache: who holds what, and what goes first.
#include "fovea/encoder_cache.h"

#include <iterator>
#include <limits>

#include "core/boundary.h"
#include "core/check.h"

namespace fovea {

namespace {

const CacheItem& item_of(const CacheRequest& request, std::size_t item) {
  FOVEA_CHECK(item < request.items.size(), kInvalidArgument, "request ", request.id, " has ",
              request.items.size(), " items, none at index ", item);
  return request.items[item];
}

std::int64_t rows_of(const CacheRequest& request, std::size_t item) {
  return item_of(request, item).placeholder.num_embeds();
}

}  // namespace

EncoderCache::EncoderCache(std::int64_t capacity_rows) try
    : capacity_(capacity_rows), num_free_(capacity_rows), num_freeable_(capacity_rows) {
  FOVEA_CHECK(capacity_rows >= 0, kInvalidArgument,
              "an encoder cache needs a capacity of at least 0 rows, got ", capacity_rows);
} catch (...) {
  rethrow_as_error();
}

void EncoderCache::reset() {
  entries_.clear();
  freeable_.clear();
  evicted_.clear();
  num_free_ = num_freeable_ = capacity_;
}

// Where a function below may run out of memory, it has changed nothing yet.

void EncoderCache::hold(Entry& entry, const CacheRequest& request, std::size_t item) {
  const bool was_free = entry.holders.empty();
  entry.holders.emplace(request.id, item);
  if (!was_free) return;
  freeable_.erase(entry.freeable);
  num_freeable_ -= entry.size;
}

bool EncoderCache::lookup(const CacheRequest& request, std::size_t item) try {
  const std::int64_t rows = rows_of(request, item);
  if (rows == 0) return true;
  const std::string& key = request.items[item].key;
  const auto found = entries_.find(key);
  if (found == entries_.end()) return false;
  FOVEA_CHECK(found->second.size == rows, kInvalidArgument, "request ", request.id, ", item ", item,
              ": has ", rows, " rows, the cache has ", found->second.size, " for its key ", key);
  hold(found->second, request, item);
  return true;
} catch (...) {
  rethrow_as_error();
}

std::optional<std::int64_t> EncoderCache::find_rows(const std::string& key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? std::nullopt : std::optional(found->second.size);
}

bool EncoderCache::make_room(const CacheRequest& request, std::size_t item,
                             std::int64_t compute_budget, std::int64_t promised) try {
  const std::int64_t rows = rows_of(request, item);
  if (rows == 0) return true;
  if (rows > compute_budget || promised > num_freeable_ - rows) return false;
  while (rows + promised > num_free_) evict_oldest();
  return true;
} catch (...) {
  rethrow_as_error();
}

void EncoderCache::evict_oldest() {
  evicted_.push_back(freeable_.front());
  const auto entry = entries_.find(freeable_.front());
  num_free_ += entry->second.size;
  entries_.erase(entry);
  freeable_.pop_front();
}

void EncoderCache::allocate(const CacheRequest& request, std::size_t item) try {
  if (lookup(request, item)) return;
  const std::int64_t rows = rows_of(request, item);
  FOVEA_CHECK(rows <= num_free_, kInternal, "request ", request.id, ", item ", item, ": ", rows,
              " rows allocated without room, ", num_free_, " are free");
  Entry entry{.size = rows, .holders = {{request.id, item}}, .freeable = {}};
  entries_.emplace(request.items[item].key, std::move(entry));
  num_free_ -= rows;
  num_freeable_ -= rows;
} catch (...) {
  rethrow_as_error();
}

void EncoderCache::release(const CacheRequest& request, std::size_t item) try {
  const auto found = entries_.find(item_of(request, item).key);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  const auto holder = entry.holders.find({request.id, item});
  if (holder == entry.holders.end()) return;
  if (entry.holders.size() == 1) {  // first what may fail for want of memory
    entry.freeable = freeable_.insert(freeable_.end(), found->first);
    num_freeable_ += entry.size;
  }
  entry.holders.erase(holder);
} catch (...) {
  rethrow_as_error();
}

void EncoderCache::release_all(const CacheRequest& request) try {
  for (std::size_t item = 0; item < request.items.size(); ++item) release(request, item);
} catch (...) {
  rethrow_as_error();
}

std::vector<std::size_t> EncoderCache::cached_items(const CacheRequest& request) const try {
  std::vector<std::size_t> cached;
  for (std::size_t item = 0; item < request.items.size(); ++item) {
    if (entries_.contains(request.items[item].key)) cached.push_back(item);
  }
  return cached;
} catch (...) {
  rethrow_as_error();
}

std::vector<std::string> EncoderCache::drain_evicted() { return std::exchange(evicted_, {}); }

std::vector<std::string> EncoderCache::freeable_keys() const try {
  return {freeable_.begin(), freeable_.end()};
} catch (...) {
  rethrow_as_error();
}

}  // namespace fovea
