#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fovea/encoder_cache.h"

namespace fovea::test {

/// "01011" as a mask.
inline std::vector<bool> mask_of(const std::string& text) {
  std::vector<bool> mask;
  for (const char c : text) mask.push_back(c == '1');
  return mask;
}

inline std::string text_of(const std::vector<bool>& mask) {
  std::string text;
  for (const bool bit : mask) text += bit ? '1' : '0';
  return text;
}

/// An item of `length` positions that all take rows, at `offset`.
inline CacheItem item_at(const std::string& key, std::int64_t offset, std::int64_t length) {
  return {key, PlaceholderRange(offset, length)};
}

/// An item with a mask.
inline CacheItem masked_item(const std::string& key, std::int64_t offset, const std::string& mask) {
  return {key, PlaceholderRange(offset, std::ssize(mask), mask_of(mask))};
}

/// A request whose only item has `rows` rows.
inline CacheRequest request_of(const std::string& id, const std::string& key, std::int64_t rows) {
  return {id, {item_at(key, 0, rows)}};
}

/// Rows free, rows freeable, and the keys that nobody holds, oldest first.
struct CacheState {
  std::int64_t num_free = 0;
  std::int64_t num_freeable = 0;
  std::vector<std::string> freeable;
  friend bool operator==(const CacheState&, const CacheState&) = default;
};

inline CacheState state_of(const EncoderCache& cache) {
  return {cache.num_free(), cache.num_freeable(), cache.freeable_keys()};
}

inline void PrintTo(const CacheState& state, std::ostream* out) {
  *out << "(" << state.num_free << ", " << state.num_freeable << ", [";
  for (const std::string& key : state.freeable) *out << key << " ";
  *out << "])";
}

}  // namespace fovea::test
