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

std::vector<std::size_t> Engine::Impl::send_found(GroupSession& session, Call& call) {
  std::vector<std::size_t> items;
  std::vector<RowCache::Claim> claims;
  std::vector<RowSink> sinks;
  if (call.cached == nullptr) return items;
  for (CachedCall::Found& found : call.cached->take_found()) {
    const MediaItem& media = call.media[found.item];
    const RowSink sink = sink_of(call, found.item);
    call.results[found.item] = found.claim.facts();
    call.results[found.item].name = media.name;
    call.results[found.item].cache = found.use;
    ++call.done;
    const std::optional<Error> error = lacks_room(sink.to, found.claim.facts().rows, media.name);
    if (error) {
      fail(call, found.item, *error);
      continue;
    }
    items.push_back(found.item);
    claims.push_back(std::move(found.claim));
    sinks.push_back(sink);
  }
  session.begin_cached(std::move(claims), call.how, sinks);
  return items;
}

}  // namespace fovea
