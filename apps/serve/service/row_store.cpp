#include "serve/service/row_store.h"

#include <iterator>

namespace fovea::serve {
namespace {

/// Bytes that an item takes: its rows, and about what stands beside them.
std::int64_t bytes_of(const std::string& name, const Embedding& item) {
  return static_cast<std::int64_t>(item.data.size() + sizeof(Embedding) + 2 * name.size());
}

}  // namespace

void RowStore::drop(Entries::iterator entry) {
  bytes_ -= entry->bytes;
  places_.erase(entry->name);
  entries_.erase(entry);
}

bool RowStore::put(const std::string& name, std::shared_ptr<const Embedding> item) {
  const std::int64_t bytes = bytes_of(name, *item);
  const std::lock_guard lock(mutex_);
  if (const auto old = places_.find(name); old != places_.end()) drop(old->second);
  if (bytes > capacity_) return false;
  while (bytes > capacity_ - bytes_) {
    drop(std::prev(entries_.end()));
    ++evictions_;
  }
  entries_.push_front({name, std::move(item), bytes});
  places_.emplace(name, entries_.begin());
  bytes_ += bytes;
  return true;
}

std::shared_ptr<const Embedding> RowStore::find(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto place = places_.find(name);
  if (place == places_.end()) {
    ++misses_;
    return nullptr;
  }
  ++hits_;
  entries_.splice(entries_.begin(), entries_, place->second);
  return place->second->item;
}

bool RowStore::erase(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto place = places_.find(name);
  if (place == places_.end()) return false;
  drop(place->second);
  return true;
}

void RowStore::clear() {
  const std::lock_guard lock(mutex_);
  places_.clear();
  entries_.clear();
  bytes_ = 0;
}

RowStoreStats RowStore::stats() const {
  const std::lock_guard lock(mutex_);
  return {.entries = static_cast<std::int64_t>(entries_.size()),
          .bytes = bytes_,
          .capacity_bytes = capacity_,
          .hits = hits_,
          .misses = misses_,
          .evictions = evictions_};
}

}  // namespace fovea::serve
