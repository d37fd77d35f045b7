// The engine: calls that ask an encoder cache in memory of the devices.
#include <utility>

#include "engine/cached/tiered_call.h"
#include "engine/engine_impl.h"

namespace fovea {

void Engine::Impl::run_tiered(Call& call, std::vector<std::optional<ItemKey>> keys) {
  TieredCall tiered(*tiers, std::move(keys), call.media, call.results);
  call.tiered = &tiered;
  const auto encoded = [&](std::size_t item) { tiered.encoded(item); };
  try {
    do {
      run(call, tiered.to_encode(), encoded);
    } while (tiered.wait_for_others(call.how.on_error));
  } catch (const Error& error) {
    tiered.failed(error);
    throw;
  }
  call.tiered = nullptr;
}

std::vector<std::size_t> Engine::Impl::send_found(GroupSession& session, Call& call) {
  std::vector<std::size_t> items;
  std::vector<TierCache::Claim> claims;
  std::vector<RowSink> sinks;
  if (call.tiered == nullptr) return items;
  for (TieredCall::Found& found : call.tiered->take_found()) {
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
