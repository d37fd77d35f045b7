// Bookkeeping of the encoder cache: who holds what, and what goes first.
#include "fovea/encoder_cache.h"

#include <set>
#include <utility>

#include "core/boundary.h"
#include "core/check.h"
#include "core/lru.h"

namespace fovea {

namespace {

using Holder = std::pair<std::string, std::size_t>;  // request and item

const CacheItem& item_of(const CacheRequest& request, std::size_t item) {
  FOVEA_CHECK(item < request.items.size(), kInvalidArgument, "request ", request.id, " has ",
              request.items.size(), " items, none at index ", item);
  return request.items[item];
}

std::int64_t rows_of(const CacheRequest& request, std::size_t item) {
  return item_of(request, item).placeholder.num_embeds();
}

}  // namespace

/// The entries by their keys, with who holds each of them: one that somebody holds has one pin.
struct EncoderCache::Books {
  explicit Books(std::int64_t capacity_rows) : entries(capacity_rows) {}

  Lru<std::string, std::set<Holder>> entries;
  std::vector<std::string> evicted;
};

EncoderCache::EncoderCache(EncoderCache&&) noexcept = default;
EncoderCache& EncoderCache::operator=(EncoderCache&&) noexcept = default;
EncoderCache::~EncoderCache() = default;

EncoderCache::EncoderCache(std::int64_t capacity_rows) try
    : books_(std::make_unique<Books>(capacity_rows)) {
  FOVEA_CHECK(capacity_rows >= 0, kInvalidArgument,
              "an encoder cache needs a capacity of at least 0 rows, got ", capacity_rows);
} catch (...) {
  rethrow_as_error();
}

void EncoderCache::reset() {
  books_->entries.clear();
  books_->evicted.clear();
}

// Where a function below may run out of memory, it has changed nothing yet.

bool EncoderCache::lookup(const CacheRequest& request, std::size_t item) try {
  const std::int64_t rows = rows_of(request, item);
  if (rows == 0) return true;
  const std::string& key = request.items[item].key;
  auto* const entry = books_->entries.find(key);
  if (entry == nullptr) return false;
  FOVEA_CHECK(entry->cost == rows, kInvalidArgument, "request ", request.id, ", item ", item,
              ": has ", rows, " rows, the cache has ", entry->cost, " for its key ", key);
  entry->value.emplace(request.id, item);
  if (entry->pins == 0) books_->entries.pin(key);
  return true;
} catch (...) {
  rethrow_as_error();
}

std::optional<std::int64_t> EncoderCache::find_rows(const std::string& key) const {
  const auto* const entry = books_->entries.find(key);
  return entry == nullptr ? std::nullopt : std::optional(entry->cost);
}

bool EncoderCache::make_room(const CacheRequest& request, std::size_t item,
                             std::int64_t compute_budget, std::int64_t promised) try {
  const std::int64_t rows = rows_of(request, item);
  if (rows == 0) return true;
  if (rows > compute_budget || promised > num_freeable() - rows) return false;
  return books_->entries.make_room(
      rows + promised, [this](const auto& entry) { books_->evicted.push_back(entry.key); });
} catch (...) {
  rethrow_as_error();
}

void EncoderCache::allocate(const CacheRequest& request, std::size_t item) try {
  if (lookup(request, item)) return;
  const std::int64_t rows = rows_of(request, item);
  FOVEA_CHECK(rows <= num_free(), kInternal, "request ", request.id, ", item ", item, ": ", rows,
              " rows allocated without room, ", num_free(), " are free");
  const std::string& key = request.items[item].key;
  books_->entries.put(key, {{request.id, item}}, rows);
  books_->entries.pin(key);
} catch (...) {
  rethrow_as_error();
}

void EncoderCache::release(const CacheRequest& request, std::size_t item) try {
  const std::string& key = item_of(request, item).key;
  auto* const entry = books_->entries.find(key);
  if (entry == nullptr || entry->value.erase({request.id, item}) == 0) return;
  if (entry->value.empty()) books_->entries.unpin(key);
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
    if (books_->entries.find(request.items[item].key) != nullptr) cached.push_back(item);
  }
  return cached;
} catch (...) {
  rethrow_as_error();
}

std::vector<std::string> EncoderCache::drain_evicted() {
  return std::exchange(books_->evicted, {});
}

std::int64_t EncoderCache::capacity() const noexcept { return books_->entries.capacity(); }
std::int64_t EncoderCache::num_free() const noexcept { return books_->entries.free(); }
std::int64_t EncoderCache::num_freeable() const noexcept { return books_->entries.freeable(); }

std::vector<std::string> EncoderCache::freeable_keys() const try {
  std::vector<std::string> keys;
  for (const auto& entry : books_->entries.unpinned()) keys.push_back(entry.key);
  return keys;
} catch (...) {
  rethrow_as_error();
}

}  // namespace fovea
