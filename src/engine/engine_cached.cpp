// The engine: calls that ask the encoder cache.
#include <utility>

#include "engine/cached/cached_call.h"
#include "engine/engine_impl.h"

namespace fovea {

void Engine::Impl::run_cached(Call& call) {
  std::vector<std::optional<ItemKey>> keys = item_keys(call);
  std::vector<std::string> names;
  names.reserve(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    names.push_back(keys[i] ? rows_key(*keys[i], call.media[i].modality, call.dtype(i), options)
                            : "");
  }
  CachedCall cached(*row_cache, std::move(keys), call.media, call.results);
  call.cached = &cached;
  const auto encoded = [&](std::size_t item) { cached.encoded(item); };
  try {
    do {
      run(call, cached.to_encode(), encoded);
    } while (cached.wait_for_others(call.how.on_error));
  } catch (const Error& error) {
    cached.failed(error);
    throw;
  }
  call.cached = nullptr;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!call.results[i].error) call.results[i].key = std::move(names[i]);
  }
  if (call.done < std::ssize(call.media)) call.tell(std::ssize(call.media));
}

std::vector<std::optional<ItemKey>> Engine::Impl::item_keys(const Call& call) {
  std::vector<std::optional<ItemKey>> keys(call.media.size());
  decode_pool.parallel_for(std::ssize(call.media), [&](std::int64_t i, int) {
    const auto item = static_cast<std::size_t>(i);
    if (call.results[item].error) return;
    keys[item] = item_key({fingerprint, options}, call.media[item]);
  });
  return keys;
}

std::vector<std::size_t> Engine::Impl::move_known(GroupSession& session, Call& call) {
  std::vector<RowMove> moves = std::exchange(call.finished, {});
  std::vector<std::size_t> items;
  std::vector<CachedCall::Found> found;
  if (call.cached != nullptr) found = call.cached->take_found();
  for (CachedCall::Found& one : found) {
    const RowTarget target = tower_target(call, one.item);
    call.results[one.item] = one.claim.facts();
    call.results[one.item].name = call.media[one.item].name;
    call.results[one.item].cache = one.use;
    ++call.done;
    const std::int64_t rows = one.claim.facts().rows;
    if (target.block != nullptr && !has_room(call, one.item, rows)) continue;
    items.push_back(one.item);
    moves.emplace_back(std::move(one.claim), target);
  }
  if (!moves.empty()) session.move(std::move(moves));
  return items;
}

}  // namespace fovea
