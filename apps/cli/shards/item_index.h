#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

#include "shards/shard.h"

namespace fovea::cli {

/// Holds what a manifest says last about each path, in 48 bytes for each of its lines, so that ten
/// million of them fit. add() in the order of the lines, then sort(), then ask.
class ItemIndex {
 public:
  static constexpr std::int64_t kFailed = -1;  ///< in place of the number of a part

  struct Entry {
    PathDigest digest{};
    std::int64_t size = 0;
    std::int64_t mtime_ns = 0;
    std::int64_t part = kFailed;
    std::int64_t place = 0;  ///< whatever the caller gave; ascending for equal paths
  };

  void add(const Entry& entry) { entries_.push_back(entry); }
  void sort() {
    std::ranges::sort(entries_, {},
                      [](const Entry& entry) { return std::tie(entry.digest, entry.place); });
  }
  /// The last entry of a path; null if there is none.
  [[nodiscard]] const Entry* find(const PathDigest& digest) const {
    const auto behind = std::ranges::upper_bound(entries_, digest, {}, &Entry::digest);
    if (behind == entries_.begin() || std::prev(behind)->digest != digest) return nullptr;
    return &*std::prev(behind);
  }
  /// All entries, those of a path next to each other in the order of their places.
  [[nodiscard]] const std::vector<Entry>& entries() const noexcept { return entries_; }
  /// Removes the entries that `unwanted` says true of.
  template <class Unwanted>
  void remove(Unwanted unwanted) {
    std::erase_if(entries_, unwanted);
  }

 private:
  std::vector<Entry> entries_;
};

}  // namespace fovea::cli
