// The items of a call and the memories of the encoder cache.
#include "engine/cached/tiered_call.h"

#include <utility>

#include "engine/cached/item_error.h"

namespace fovea {

TieredCall::TieredCall(TierCache& cache, std::vector<std::optional<ItemKey>> keys, ItemView media,
                       std::span<Embedding> results)
    : media_(media), results_(results), items_(media.size()) {
  for (std::size_t i = 0; i < media.size(); ++i) {
    Item& item = items_[i];
    item.key = std::move(keys[i]);
    if (item.key) item.claim.emplace(cache.claim(item.key->text));
    if (!item.claim || item.claim->turn() == TierCache::Turn::kEncode) {
      to_encode_.push_back(i);
      if (item.key) own_keys_.insert(item.key->text);
    } else if (item.claim->turn() == TierCache::Turn::kRead) {
      found_.push_back({i, std::move(*item.claim), CacheUse::kHit});
      item.claim.reset();
    }
  }
}

TierCache::Claim* TieredCall::keeper(std::size_t item, const Embedding& described) {
  Item& kept = items_[item];
  if (!kept.claim || !kept.key->is_current()) return nullptr;
  kept.claim->describe(described);
  return &*kept.claim;
}

void TieredCall::encoded(std::size_t item) {
  std::optional<TierCache::Claim>& claim = items_[item].claim;
  if (!claim) return;
  Embedding& result = results_[item];
  const bool counts_as_miss = claim->is_kept() || result.error;
  result.cache = counts_as_miss ? CacheUse::kMiss : CacheUse::kBypass;
  if (result.error) claim->fail(without_name(*result.error, media_[item]));
  claim.reset();
}

void TieredCall::fail(std::size_t item, const Error& error) {
  results_[item].name = media_[item].name;
  results_[item].modality = media_[item].modality;
  results_[item].cache = CacheUse::kJoin;
  results_[item].error = with_name(error, media_[item]);
  items_[item].claim.reset();
}

bool TieredCall::wait_for_others(OnError on_error) {
  to_encode_.clear();
  for (std::size_t i = 0; i < items_.size() && to_encode_.empty(); ++i) {
    std::optional<TierCache::Claim>& claim = items_[i].claim;
    if (!claim) continue;
    const bool is_own = own_keys_.contains(items_[i].key->text);
    claim->wait(is_own);
    if (claim->turn() == TierCache::Turn::kEncode) {
      to_encode_.push_back(i);
      own_keys_.insert(items_[i].key->text);
    } else if (claim->turn() == TierCache::Turn::kRead) {
      found_.push_back({i, std::move(*claim), is_own ? CacheUse::kHit : CacheUse::kJoin});
      claim.reset();
    } else {
      fail(i, Error(claim->error()));
      if (on_error == OnError::kFail) throw Error(*results_[i].error);
    }
  }
  return !to_encode_.empty() || !found_.empty();
}

void TieredCall::failed(const Error& error) {
  const bool is_over =
      error.code() == ErrorCode::kCancelled || error.code() == ErrorCode::kDeadline;
  bool is_of_item = false;
  for (const std::size_t item : to_encode_) is_of_item |= results_[item].error.has_value();
  for (const std::size_t item : to_encode_) {
    std::optional<TierCache::Claim>& claim = items_[item].claim;
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
