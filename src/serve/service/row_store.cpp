#include "serve/service/row_store.h"

#include <utility>

namespace fovea::serve {
namespace {

/// Bytes that an item takes: its rows, and about what stands beside them.
std::int64_t bytes_of(const std::string& name, const Embedding& item) {
  return static_cast<std::int64_t>(item.data.size() + sizeof(Embedding) + 2 * name.size());
}

}  // namespace

bool RowStore::put(const std::string& name, std::shared_ptr<const Embedding> item) {
  const std::int64_t bytes = bytes_of(name, *item);
  const std::lock_guard lock(mutex_);
  items_.erase(name);
  if (!items_.make_room(bytes, [this](const auto&) { ++evictions_; })) return false;
  items_.put(name, std::move(item), bytes);
  return true;
}

std::shared_ptr<const Embedding> RowStore::find(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto* const entry = items_.use(name);
  ++(entry != nullptr ? hits_ : misses_);
  return entry != nullptr ? entry->value : nullptr;
}

bool RowStore::erase(const std::string& name) {
  const std::lock_guard lock(mutex_);
  return items_.erase(name);
}

void RowStore::clear() {
  const std::lock_guard lock(mutex_);
  items_.clear();
}

RowStoreStats RowStore::stats() const {
  const std::lock_guard lock(mutex_);
  return {.entries = static_cast<std::int64_t>(items_.size()),
          .bytes = items_.cost(),
          .capacity_bytes = items_.capacity(),
          .hits = hits_,
          .misses = misses_,
          .evictions = evictions_};
}

}  // namespace fovea::serve
