// The items of a call and the encoder cache.
#include "engine/cached_call.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/interrupt.h"

namespace fovea {

namespace {

/// How messages about an item begin.
std::string label_of(const MediaItem& media) {
  return (media.name.empty() ? "item" : media.name) + ": ";
}

/// The error as it is for items of the same content, whatever they are called.
Error without_name(const Error& error, const MediaItem& media) {
  std::string_view text = error.what();
  if (text.starts_with(label_of(media))) text.remove_prefix(label_of(media).size());
  return {error.code(), text};
}

}  // namespace

CachedCall::CachedCall(RowCache* cache, Call& call) : call_(call) {
  for (Item& item : call.items) {
    if (item.result().error) continue;
    if (item.key) {
      item.claim.emplace(cache->claim(item.cache_key(), &call));
      sort(item);
    } else {
      to_encode_.push_back(&item);
    }
  }
}

void CachedCall::look_in(SharedRows& shared, Device& device) {
  constexpr std::size_t kAtOnce = 4;  // whose rows are in memory beside the cache
  Selection claimed;
  std::ranges::copy_if(to_encode_, std::back_inserter(claimed),
                       [](const Item* item) { return item->claim.has_value(); });
  const std::unique_ptr<Stream> queue = claimed.empty() ? nullptr : device.create_copy_stream();
  std::span<Item* const> left(claimed);
  for (bool has_room = true; has_room && !left.empty();) {
    const auto items = left.first(std::min(kAtOnce, left.size()));
    left = left.subspan(items.size());
    check_interrupt();
    std::vector<std::string> keys;
    for (const Item* item : items) keys.push_back(item->cache_key());
    const std::vector<std::optional<RowEntry>> entries = shared.find(keys);
    for (std::size_t i = 0; i < items.size() && has_room; ++i) {
      if (!entries[i]) continue;
      has_room = items[i]->claim->fill(device, *queue, entries[i]->facts, entries[i]->rows());
      if (!has_room) break;
      std::erase(to_encode_, items[i]);
      found_.push_back(items[i]);
    }
  }
}

void CachedCall::sort(Item& item) {
  if (item.claim->turn() == RowCache::Turn::kEncode) {
    to_encode_.push_back(&item);
  } else if (item.claim->turn() == RowCache::Turn::kRead) {
    found_.push_back(&item);
  } else if (item.claim->turn() == RowCache::Turn::kFailed) {
    fail(item);
  }
}

RowCache::Claim* CachedCall::keeper(Item& item) {
  if (!item.claim || !item.key->is_current()) return nullptr;
  item.claim->describe(item.result());
  return &*item.claim;
}

void CachedCall::encoded(Item& item) {
  if (!item.claim) return;
  Embedding& result = item.result();
  if (result.error) item.claim->fail(without_name(*result.error, *item.media));
  item.claim->bypass();  // of a claim that store() or fail() has not ended
  result.cache = item.claim->use();
  item.claim.reset();
}

void CachedCall::fail(Item& item) {
  const Error& error = item.claim->error();
  call_.fail(item, {error.code(), label_of(*item.media) + error.what()});
  item.result().cache = item.claim->use();
  item.claim.reset();
}

bool CachedCall::wait_for_others() {
  to_encode_.clear();
  for (Item& item : call_.items) {
    if (!to_encode_.empty()) break;
    if (!item.claim || item.claim->turn() != RowCache::Turn::kWait) continue;
    item.claim->wait();
    sort(item);
  }
  return !to_encode_.empty() || !found_.empty();
}

void CachedCall::failed(const Error& error) {
  const bool is_over =
      error.code() == ErrorCode::kCancelled || error.code() == ErrorCode::kDeadline;
  bool is_of_item = false;
  for (const Item* item : to_encode_) is_of_item |= item->result().error.has_value();
  for (Item* item : to_encode_) {
    if (!item->claim) continue;
    if (item->result().error) {
      encoded(*item);
    } else if (!is_of_item && !is_over) {
      item->claim->fail(error);
    }
    item->claim.reset();  // what has not failed is left to those who wait
  }
}

}  // namespace fovea
