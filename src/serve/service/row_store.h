#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "core/lru.h"
#include "fovea/embedding.h"

namespace fovea::serve {

/// Counters of a store. Those of entries are of now, the others since the start.
struct RowStoreStats {
  std::int64_t entries = 0;
  std::int64_t bytes = 0;
  std::int64_t capacity_bytes = 0;
  std::int64_t hits = 0;
  std::int64_t misses = 0;
  std::int64_t evictions = 0;
};

/// Rows by the name under which clients fetch them. Those that have not been stored or found for
/// the longest time go when room is needed; an item that is held stays. Rows under two names count
/// twice. Thread-safe.
class RowStore {
 public:
  explicit RowStore(std::int64_t capacity_bytes) noexcept : items_(capacity_bytes) {}

  /// Stores an item under a name, in place of what was there.
  /// @return false if it is larger than the whole store: then the name stands for nothing.
  bool put(const std::string& name, std::shared_ptr<const Embedding> item);
  /// The item of that name; null if there is none.
  [[nodiscard]] std::shared_ptr<const Embedding> find(const std::string& name);
  /// @return whether there was such a name.
  bool erase(const std::string& name);
  void clear();

  [[nodiscard]] RowStoreStats stats() const;

 private:
  mutable std::mutex mutex_;
  Lru<std::string, std::shared_ptr<const Embedding>> items_;
  std::int64_t hits_ = 0;
  std::int64_t misses_ = 0;
  std::int64_t evictions_ = 0;
};

}  // namespace fovea::serve
