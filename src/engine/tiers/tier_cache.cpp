// What lies in which memory, and what has to leave it.
#include "engine/tiers/tier_cache.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace fovea {

TierCache::Tier::Tier(Device& device, bool is_host, std::int64_t bytes)
    : arena(is_host ? nullptr : &device, is_host
                                             ? device.allocate_host(static_cast<std::size_t>(bytes))
                                             : device.allocate(static_cast<std::size_t>(bytes))),
      marks(device) {
  counts.capacity_bytes = bytes;
  if (!is_host) leaving = device.create_copy_stream();
}

TierCache::TierCache(std::span<Device* const> devices, std::int64_t device_bytes,
                     std::int64_t host_bytes) {
  for (Device* const device : devices) devices_.emplace_back(*device, false, device_bytes);
  if (host_bytes > 0) host_.emplace(*devices.front(), true, host_bytes);
}

TierCache::~TierCache() {
  for (const Tier& tier : devices_) {
    try {
      if (!tier.leaving->is_idle()) tier.leaving->synchronize();
    } catch (...) {  // NOLINT: nothing writes to the host any more
    }
  }
}

TierCache::Claim TierCache::claim(const std::string& key) {
  Claim claim(*this, key);  // before the lock, which its end takes
  const std::lock_guard lock(mutex_);
  ++counts_.queries;
  if (const auto found = entries_.find(key); found != entries_.end()) {
    Entry& entry = found->second;
    claim.rows_ = entry.rows;
    claim.turn_ = Turn::kRead;
    entry.tier->order.splice(entry.tier->order.end(), entry.tier->order, entry.place);
    ++entry.tier->counts.hits;
    ++counts_.hits;
    return claim;
  }
  auto place = flights_.find(key);
  if (place == flights_.end()) place = flights_.emplace(key, std::make_shared<Flight>()).first;
  Flight& flight = *place->second;
  claim.flight_ = place->second;
  if (flight.is_encoded) {
    claim.turn_ = Turn::kWait;
    ++flight.waiting;
  }
  flight.is_encoded = true;
  return claim;
}

TierCache::Tier& TierCache::tier_of(const Device& device) {
  const auto found = std::ranges::find_if(
      devices_, [&](const Tier& tier) { return tier.arena.device() == &device; });
  FOVEA_CHECK(found != devices_.end(), kInternal, device.properties().name,
              ": the encoder cache has no memory there");
  return *found;
}

bool TierCache::is_freeable(const std::string& key) const {
  return entries_.at(key).rows.slot.use_count() == 1;
}

bool TierCache::has_room(const Tier& tier, std::size_t bytes) const {
  std::size_t found = tier.arena.free_bytes();
  for (const std::string& key : tier.order) {
    if (found >= RowArena::rounded(bytes)) return true;
    if (is_freeable(key)) found += RowArena::rounded(entries_.at(key).rows.slot->bytes());
  }
  return found >= RowArena::rounded(bytes);
}

std::shared_ptr<RowSlot> TierCache::make_room(Tier& tier, std::size_t bytes) {
  if (bytes == 0 || !has_room(tier, bytes)) return nullptr;
  while (true) {
    std::shared_ptr<RowSlot> slot = tier.arena.allocate(bytes);
    if (slot) return slot;
    const auto oldest = std::ranges::find_if(
        tier.order, [this](const std::string& key) { return is_freeable(key); });
    if (oldest == tier.order.end()) return nullptr;
    evict(std::string(*oldest));
  }
}

void TierCache::evict(const std::string& key) {
  const auto found = entries_.find(key);
  Entry& entry = found->second;
  Tier& from = *entry.tier;
  ++from.counts.evictions;
  if (host_ && &from != &*host_) {
    if (const auto slot = make_room(*host_, entry.rows.slot->bytes())) {
      move(entry, *host_, slot, *from.leaving, from.marks);
      return;
    }
  }
  ++counts_.evictions;
  from.order.erase(entry.place);
  entries_.erase(found);
}

void TierCache::move(Entry& entry, Tier& to, const std::shared_ptr<RowSlot>& slot, Stream& queue,
                     RowMarks& marks) {
  RowSlot& from = *entry.rows.slot;
  from.begin_read(queue);
  slot->begin_write(queue);
  queue.copy(slot->data(), from.data(), from.bytes());
  const RowMark mark = marks.after(queue);
  slot->end_write(mark);
  from.end_read(mark);
  to.order.splice(to.order.end(), entry.tier->order, entry.place);
  entry.tier = &to;
  entry.rows.slot = slot;
}

void TierCache::keep(const std::string& key, const Rows& rows, Tier& tier) {
  std::list<std::string> place{key};
  entries_.emplace(key, Entry{rows, &tier, place.begin()});
  tier.order.splice(tier.order.end(), place);
}

void TierCache::end(const std::string& key, Flight& flight) {
  flight.is_over = true;
  flights_.erase(key);
  flight.changed.notify_all();
}

EncoderCacheStats TierCache::stats() const {
  const std::lock_guard lock(mutex_);
  EncoderCacheStats stats = counts_;
  const auto add = [&](const Tier& tier, CacheTierStats& total) {
    total.capacity_bytes += tier.counts.capacity_bytes;
    total.hits += tier.counts.hits;
    total.evictions += tier.counts.evictions;
    for (const std::string& key : tier.order) {
      const Rows& rows = entries_.at(key).rows;
      const auto bytes = static_cast<std::int64_t>(rows.slot->bytes());
      ++total.items;
      total.bytes += bytes;
      stats.rows += rows.facts.rows;
      if (is_freeable(key)) stats.freeable_bytes += bytes;
    }
  };
  for (const Tier& tier : devices_) add(tier, stats.device);
  if (host_) add(*host_, stats.host);
  // Whoever asks looks on the devices first, and then on the host.
  stats.device.misses = stats.queries - stats.device.hits;
  if (host_) stats.host.misses = stats.device.misses - stats.host.hits;
  stats.capacity_bytes = stats.device.capacity_bytes + stats.host.capacity_bytes;
  stats.bytes = stats.device.bytes + stats.host.bytes;
  stats.items = stats.device.items + stats.host.items;
  for (const auto& [key, flight] : flights_) stats.waiting += flight->waiting;
  return stats;
}

}  // namespace fovea
