// What lies in which memory, and what has to leave it.
#include "rows/row_cache.h"

#include <algorithm>
#include <new>
#include <utility>

#include "core/check.h"

namespace fovea {

namespace {

/// Memory of the host that a device copies to and from.
Buffer host_memory(Device& device, std::size_t bytes) try {
  if (bytes == 0) return {};
  if (!device.properties().host_memory) return device.allocate_host(bytes);
  auto memory = std::make_unique<RowBytes>(bytes);  // takes pages as they are written to
  std::byte* const data = memory->data();
  const auto drop = [](void* owner, std::byte*, std::size_t) noexcept {
    delete static_cast<RowBytes*>(owner);
  };
  return {data, bytes, drop, memory.release()};
} catch (const std::bad_alloc&) {
  throw Error(ErrorCode::kOutOfMemory, cat("no memory for an encoder cache of ", bytes, " bytes"));
}

}  // namespace

std::int64_t RowCache::cost_of(std::size_t bytes) {
  return static_cast<std::int64_t>(RowArena::rounded(bytes));
}

RowCache::Tier::Tier(Device* device, Buffer memory)
    : arena(device, std::move(memory)), entries(static_cast<std::int64_t>(arena.capacity())) {
  counts.capacity_bytes = entries.capacity();
  if (device == nullptr) return;
  marks.emplace(*device);
  leaving = device->create_copy_stream();
}

RowCache::RowCache(std::span<Device* const> devices, std::int64_t device_bytes,
                   std::int64_t host_bytes) {
  for (Device* const device : devices) {
    const auto bytes = static_cast<std::size_t>(device_bytes);
    tiers_.emplace_back(device, bytes == 0 ? Buffer() : device->allocate(bytes));
  }
  tiers_.emplace_back(nullptr, host_memory(*devices.front(), static_cast<std::size_t>(host_bytes)));
}

RowCache::Tier* RowCache::find_for(Claim& claim) {
  for (Tier& tier : tiers_) {
    const Entries::Entry* const entry = tier.entries.pin(claim.key_);
    if (entry == nullptr) continue;
    claim.is_pinned_ = true;  // before the copy, which may find no memory
    claim.rows_ = entry->value;
    claim.turn_ = Turn::kRead;
    claim.use_ = CacheUse::kHit;
    return &tier;
  }
  return nullptr;
}

std::optional<RowCache::Claim> RowCache::find(const std::string& key) {
  std::optional<Claim> claim(Claim(*this, key, nullptr));  // before the lock, as below
  const std::lock_guard lock(mutex_);
  if (find_for(*claim) == nullptr) return std::nullopt;
  return claim;
}

RowCache::Claim RowCache::claim(const std::string& key, const void* call) {
  Claim claim(*this, key, call);  // before the lock, which its end takes
  const std::lock_guard lock(mutex_);
  ++counts_.queries;
  if (Tier* const tier = find_for(claim)) {
    ++tier->counts.hits;
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
  } else {
    flight.is_encoded = true;
    flight.call = call;
  }
  return claim;
}

std::vector<RowCache::DeviceMemory> RowCache::device_memories() const {
  std::vector<DeviceMemory> memories;
  for (const Tier& tier : tiers_) {
    if (tier.arena.device() == nullptr) continue;
    memories.push_back({tier.arena.device(), &tier.arena.memory()});
  }
  return memories;
}

RowCache::Tier& RowCache::tier_of(const Device& device) {
  const auto found = std::ranges::find(
      tiers_, &device, [](const Tier& tier) -> const Device* { return tier.arena.device(); });
  FOVEA_CHECK(found != tiers_.end(), kInternal, device.properties().name,
              ": no device of the encoder cache");
  return *found;
}

RowCache::Place RowCache::reserve(std::initializer_list<Tier*> tiers, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  for (Tier* const tier : tiers) {
    if (auto slot = make_room(*tier, bytes)) return {tier, std::move(slot)};
  }
  return {};
}

std::shared_ptr<RowSlot> RowCache::make_room(Tier& tier, std::size_t bytes) {
  const std::int64_t unpinned = tier.entries.freeable() - tier.entries.free();
  const auto free = static_cast<std::int64_t>(tier.arena.free_bytes());
  if (bytes == 0 || cost_of(bytes) > free + unpinned) return nullptr;
  while (true) {
    std::shared_ptr<RowSlot> slot = tier.arena.allocate(bytes);
    if (slot || tier.entries.unpinned().empty()) return slot;
    evict(tier, std::string(tier.entries.unpinned().front().key));
  }
}

void RowCache::evict(Tier& from, const std::string& key) {
  ++from.counts.evictions;
  if (&from != &host()) {
    const Place to{&host(), make_room(host(), from.entries.find(key)->value.slot->bytes())};
    if (to.slot) return move(key, from, to, *from.leaving, *from.marks);
  }
  ++counts_.evictions;
  from.entries.erase(key);
}

void RowCache::move(const std::string& key, Tier& from, const Place& to, Stream& queue,
                    RowMarks& marks) {
  std::shared_ptr<RowSlot>& slot = from.entries.find(key)->value.slot;
  slot->begin_read(queue);
  to.slot->begin_write(queue);
  queue.copy(to.slot->data(), slot->data(), slot->bytes());
  const RowMark mark = marks.after(queue);
  to.slot->end_write(mark);
  slot->end_read(mark);
  to.tier->entries.take(from.entries, key);
  slot = to.slot;
}

void RowCache::end(const std::string& key, Flight& flight) {
  flights_.erase(key);
  flight.changed.notify_all();
}

EncoderCacheStats RowCache::stats() const {
  const std::lock_guard lock(mutex_);
  EncoderCacheStats stats = counts_;
  for (const Tier& tier : tiers_) {
    CacheTierStats& total = &tier == &tiers_.back() ? stats.host : stats.device;
    total.capacity_bytes += tier.counts.capacity_bytes;
    total.hits += tier.counts.hits;
    total.evictions += tier.counts.evictions;
    total.items += static_cast<std::int64_t>(tier.entries.size());
    for (const auto* const entries : {&tier.entries.unpinned(), &tier.entries.pinned()}) {
      for (const Entries::Entry& entry : *entries) {
        const auto bytes = static_cast<std::int64_t>(entry.value.slot->bytes());
        total.bytes += bytes;
        stats.rows += entry.value.facts.rows;
        if (entry.pins == 0) stats.freeable_bytes += bytes;
      }
    }
  }
  // Whoever asks looks on the devices first, and then on the host.
  const std::int64_t past_devices = stats.queries - stats.device.hits;
  if (stats.device.capacity_bytes > 0) stats.device.misses = past_devices;
  if (stats.host.capacity_bytes > 0) stats.host.misses = past_devices - stats.host.hits;
  stats.capacity_bytes = stats.device.capacity_bytes + stats.host.capacity_bytes;
  stats.bytes = stats.device.bytes + stats.host.bytes;
  stats.items = stats.device.items + stats.host.items;
  for (const auto& [key, flight] : flights_) stats.waiting += flight->waiting;
  return stats;
}

}  // namespace fovea
