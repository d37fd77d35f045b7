// The items of a call and the encoder cache.
#include "engine/cached/cached_call.h"

#include <new>
#include <string>
#include <unordered_map>
#include <utility>

#include "core/stopwatch.h"
#include "engine/cached/item_error.h"

namespace fovea {

CachedCall::CachedCall(RowCache& cache, std::vector<std::optional<ItemKey>> keys, ItemView media,
                       std::span<Embedding> results)
    : cache_(cache), media_(media), results_(results), group_of_(media.size()) {
  group(std::move(keys));
  for (Group& group : groups_) {
    group.claim.emplace(cache_.claim(group.key.text));
    if (group.claim->turn() == RowCache::Turn::kRead) read(group, CacheUse::kHit);
  }
  for (std::size_t item = 0; item < media.size(); ++item) {
    const Group* const group = group_of_[item] ? &groups_[*group_of_[item]] : nullptr;
    if (group != nullptr && (item != group->items.front() || !group->claim ||
                             group->claim->turn() != RowCache::Turn::kEncode)) {
      continue;
    }
    to_encode_.push_back(item);
  }
}

void CachedCall::group(std::vector<std::optional<ItemKey>> keys) {
  std::unordered_map<std::string, std::size_t> places;
  for (std::size_t item = 0; item < keys.size(); ++item) {
    if (!keys[item]) continue;
    const auto [place, is_new] = places.try_emplace(keys[item]->text, groups_.size());
    if (is_new) groups_.push_back({std::move(*keys[item]), {}, std::nullopt});
    groups_[place->second].items.push_back(item);
    group_of_[item] = place->second;
  }
}

void CachedCall::read(Group& group, CacheUse use) {
  const Stopwatch watch;
  Embedding& result = results_[group.items.front()];
  result.name = media_[group.items.front()].name;
  group.claim->read(result);
  result.cache = use;
  group.claim.reset();
  result.times.output_ms = watch.elapsed_ms();
  repeat(group);
}

void CachedCall::fail(Group& group, const Error& error) {
  const std::size_t item = group.items.front();
  results_[item].name = media_[item].name;
  results_[item].modality = media_[item].modality;
  results_[item].cache = CacheUse::kJoin;
  results_[item].error = with_name(error, media_[item]);
  group.claim.reset();
  repeat(group);
}

void CachedCall::repeat(const Group& group) {
  const std::size_t first = group.items.front();
  for (const std::size_t item : std::span(group.items).subspan(1)) {
    const Stopwatch watch;
    Embedding copy = results_[first];
    copy.name = media_[item].name;
    if (copy.error) {
      copy.error = with_name(without_name(*copy.error, media_[first]), media_[item]);
    } else {
      copy.cache = CacheUse::kHit;
    }
    copy.graph = GraphUse::kNone;
    copy.times = {.output_ms = watch.elapsed_ms()};
    results_[item] = std::move(copy);
  }
  if (!results_[first].error) cache_.count_repeats(std::ssize(group.items) - 1);
}

void CachedCall::encoded(std::size_t item) {
  if (!group_of_[item]) return;
  Group& group = groups_[*group_of_[item]];
  Embedding& result = results_[item];
  result.cache = CacheUse::kBypass;
  if (result.error) {
    result.cache = CacheUse::kMiss;
    group.claim->fail(without_name(*result.error, media_[item]));
  } else if (group.key.is_current()) {
    try {
      if (group.claim->publish(result)) result.cache = CacheUse::kMiss;
    } catch (const std::bad_alloc&) {  // the call has its rows: those who wait encode theirs
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kOutOfMemory) throw;  // of the books, likewise
    }
  }
  group.claim.reset();
  repeat(group);
}

std::optional<std::size_t> CachedCall::wait_for_others(OnError on_error) {
  for (Group& group : groups_) {
    if (!group.claim) continue;
    group.claim->wait();
    const std::size_t item = group.items.front();
    if (group.claim->turn() == RowCache::Turn::kEncode) {
      to_encode_.push_back(item);
      return item;
    }
    if (group.claim->turn() == RowCache::Turn::kRead) {
      read(group, CacheUse::kJoin);
      continue;
    }
    fail(group, Error(group.claim->error()));
    if (on_error == OnError::kFail) throw Error(*results_[item].error);
  }
  return std::nullopt;
}

void CachedCall::failed(const Error& error) {
  const bool is_over =
      error.code() == ErrorCode::kCancelled || error.code() == ErrorCode::kDeadline;
  bool is_of_item = false;
  for (const std::size_t item : to_encode_) is_of_item |= results_[item].error.has_value();
  for (Group& group : groups_) {
    if (!group.claim || group.claim->turn() != RowCache::Turn::kEncode) continue;
    const std::size_t item = group.items.front();
    if (results_[item].error) {
      group.claim->fail(without_name(*results_[item].error, media_[item]));
    } else if (!is_of_item && !is_over) {
      group.claim->fail(error);
    }
    group.claim.reset();  // what has not failed is left to those who wait
  }
}

}  // namespace fovea
