// Paths by their digests.
#include "shards/item_index.h"

#include <algorithm>
#include <tuple>

namespace fovea::cli {

void ItemIndex::sort() {
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.digest, a.place) < std::tie(b.digest, b.place);
  });
}

const ItemIndex::Entry* ItemIndex::find(const PathDigest& digest) const {
  const auto behind =
      std::upper_bound(entries_.begin(), entries_.end(), digest,
                       [](const PathDigest& a, const Entry& b) { return a < b.digest; });
  if (behind == entries_.begin() || std::prev(behind)->digest != digest) return nullptr;
  return &*std::prev(behind);
}

}  // namespace fovea::cli
