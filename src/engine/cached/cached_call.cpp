// The items of a call and the encoder cache.
#include "engine/cached/cached_call.h"

#include <utility>

#include "engine/cached/item_error.h"

namespace fovea {

CachedCall::CachedCall(RowCache& cache, std::vector<std::optional<ItemKey>> keys, ItemView media,
                       std::span<Embedding> results)
    : media_(media), results_(results), items_(media.size()) {
  for (std::size_t i = 0; i < media.size(); ++i) {
    Item& item = items_[i];
    item.key = std::move(keys[i]);
    if (item.key) item.claim.emplace(cache.claim(item.key->text));
    if (!item.claim || item.claim->turn() == RowCache::Turn::kEncode) {
      to_encode_.push_back(i);
      if (item.key) own_keys_.insert(item.key->text);
    } else if (item.claim->turn() == RowCache::Turn::kRead) {
      found_.push_back({i, std::move(*item.claim), CacheUse::kHit});
      item.claim.reset();
    }
  }
}

RowCache::Claim* CachedCall::keeper(std::size_t item, const Embedding& described) {
  Item& kept = items_[item];
  if (!kept.claim || !kept.key->is_current()) return nullptr;
  kept.claim->describe(described);
  return &*kept.claim;
}

void CachedCall::encoded(std::size_t item) {
  std::optional<RowCache::Claim>& claim = items_[item].claim;
  if (!claim) return;
  Embedding& result = results_[item];
  const bool counts_as_miss = claim->is_kept() || result.error;
  result.cache = counts_as_miss ? CacheUse::kMiss : CacheUse::kBypass;
  if (result.error) claim->fail(without_name(*result.error, media_[item]));
  claim.reset();
}

CacheUse CachedCall::use_of(const Item& item) const {
  return own_keys_.contains(item.key->text) ? CacheUse::kHit : CacheUse::kJoin;
}

void CachedCall::fail(std::size_t item, const Error& error) {
  results_[item].name = media_[item].name;
  results_[item].modality = media_[item].modality;
  results_[item].cache = use_of(items_[item]);
  results_[item].error = with_name(error, media_[item]);
  items_[item].claim.reset();
}

bool CachedCall::wait_for_others(OnError on_error) {
  to_encode_.clear();
  for (std::size_t i = 0; i < items_.size() && to_encode_.empty(); ++i) {
    std::optional<RowCache::Claim>& claim = items_[i].claim;
    if (!claim) continue;
    const CacheUse use = use_of(items_[i]);
    claim->wait(use == CacheUse::kHit);
    if (claim->turn() == RowCache::Turn::kEncode) {
      to_encode_.push_back(i);
      own_keys_.insert(items_[i].key->text);
    } else if (claim->turn() == RowCache::Turn::kRead) {
      found_.push_back({i, std::move(*claim), use});
      claim.reset();
    } else {
      fail(i, Error(claim->error()));
      if (on_error == OnError::kFail) throw Error(*results_[i].error);
    }
  }
  return !to_encode_.empty() || !found_.empty();
}

void CachedCall::failed(const Error& error) {
  const bool is_over =
      error.code() == ErrorCode::kCancelled || error.code() == ErrorCode::kDeadline;
  bool is_of_item = false;
  for (const std::size_t item : to_encode_) is_of_item |= results_[item].error.has_value();
  for (const std::size_t item : to_encode_) {
    std::optional<RowCache::Claim>& claim = items_[item].claim;
    if (!claim) continue;
    if (results_[item].error) {
      encoded(item);
    } else if (!is_of_item && !is_over) {
      claim->fail(error);
    }
    claim.reset();  // what has not failed is left to those who wait
  }
}

}  // namespace fovea
