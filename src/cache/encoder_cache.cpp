// Bookkeeping of the encoder cache: who holds what, and what goes first.
#include "fovea/encoder_cache.h"

#include <iterator>
#include <limits>

#include "core/check.h"

namespace fovea {

namespace {

std::int64_t rows_of(const CacheRequest& request, std::size_t item) {
  return request.items.at(item).placeholder.num_embeds();
}

}  // namespace

EncoderCache::EncoderCache(std::int64_t capacity_rows)
    : capacity_(capacity_rows), num_free_(capacity_rows), num_freeable_(capacity_rows) {
  FOVEA_CHECK(capacity_rows >= 0, kInvalidArgument,
              "an encoder cache needs a capacity of at least 0 rows, got ", capacity_rows);
}

void EncoderCache::reset() {
  entries_.clear();
  freeable_.clear();
  evicted_.clear();
  num_free_ = num_freeable_ = capacity_;
}

void EncoderCache::hold(Entry& entry, const CacheRequest& request, std::size_t item) {
  if (entry.holders.empty()) {
    freeable_.erase(entry.freeable);
    num_freeable_ -= entry.size;
  }
  entry.holders.emplace(request.id, item);
}

bool EncoderCache::lookup(const CacheRequest& request, std::size_t item) {
  const std::int64_t rows = rows_of(request, item);
  if (rows == 0) return true;
  const std::string& key = request.items[item].key;
  const auto found = entries_.find(key);
  if (found == entries_.end()) return false;
  FOVEA_CHECK(found->second.size == rows, kInvalidArgument, "request ", request.id, ", item ", item,
              ": has ", rows, " rows, the cache has ", found->second.size, " for its key ", key);
  hold(found->second, request, item);
  return true;
}

bool EncoderCache::make_room(const CacheRequest& request, std::size_t item,
                             std::int64_t compute_budget, std::int64_t promised) {
  const std::int64_t rows = rows_of(request, item);
  if (rows == 0) return true;
  if (rows > compute_budget || promised > num_freeable_ - rows) return false;
  while (rows + promised > num_free_) evict_oldest();
  return true;
}

void EncoderCache::evict_oldest() {
  const auto entry = entries_.find(freeable_.front());
  num_free_ += entry->second.size;
  entries_.erase(entry);
  evicted_.push_back(std::move(freeable_.front()));
  freeable_.pop_front();
}

void EncoderCache::allocate(const CacheRequest& request, std::size_t item) {
  if (lookup(request, item)) return;
  const std::int64_t rows = rows_of(request, item);
  FOVEA_CHECK(rows <= num_free_, kInternal, "request ", request.id, ", item ", item, ": ", rows,
              " rows allocated without room, ", num_free_, " are free");
  Entry& entry = entries_[request.items[item].key];
  entry.size = rows;
  entry.holders.emplace(request.id, item);
  num_free_ -= rows;
  num_freeable_ -= rows;
}

void EncoderCache::release(const CacheRequest& request, std::size_t item) {
  const auto found = entries_.find(request.items.at(item).key);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  const auto holder = entry.holders.find({request.id, item});
  if (holder == entry.holders.end()) return;
  if (entry.holders.size() == 1) {  // first what may fail for want of memory
    entry.freeable = freeable_.insert(freeable_.end(), found->first);
    num_freeable_ += entry.size;
  }
  entry.holders.erase(holder);
}

void EncoderCache::release_all(const CacheRequest& request) {
  for (std::size_t item = 0; item < request.items.size(); ++item) release(request, item);
}

std::vector<std::size_t> EncoderCache::cached_items(const CacheRequest& request) const {
  std::vector<std::size_t> cached;
  for (std::size_t item = 0; item < request.items.size(); ++item) {
    if (entries_.contains(request.items[item].key)) cached.push_back(item);
  }
  return cached;
}

std::vector<std::string> EncoderCache::drain_evicted() { return std::exchange(evicted_, {}); }

std::vector<std::string> EncoderCache::freeable_keys() const {
  return {freeable_.begin(), freeable_.end()};
}

}  // namespace fovea
