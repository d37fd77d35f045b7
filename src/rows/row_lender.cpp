// Rows of the encoder cache for other processes.
#include "rows/row_lender.h"

#include <algorithm>
#include <utility>

#include "core/row_dtype.h"

namespace fovea {

namespace {

/// Where rows lie in one of these memories; nothing if they are in that of the host.
std::optional<LentItem> place_of(const RowCache::Claim& claim,
                                 std::span<const RowCache::DeviceMemory> memories) {
  const RowSlot& slot = claim.slot();
  const auto memory = std::ranges::find(memories, slot.device(), &RowCache::DeviceMemory::device);
  if (memory == memories.end()) return std::nullopt;
  const TensorView rows = claim.rows();
  return LentItem{.memory = static_cast<std::size_t>(memory - memories.begin()),
                  .offset_bytes = static_cast<std::size_t>(slot.data() - memory->memory->data()),
                  .rows = rows.shape[0],
                  .width = rows.shape[1],
                  .dtype = to_row_dtype(rows.dtype).value()};
}

}  // namespace

RowLender::RowLender(RowCache& cache, NameMemory name_memory)
    : cache_(cache), name_memory_(std::move(name_memory)) {}

const std::vector<DeviceMemoryName>& RowLender::names() {
  const std::lock_guard lock(mutex_);
  if (!names_.empty()) return names_;
  std::vector<DeviceMemoryName> names;
  for (const RowCache::DeviceMemory& memory : cache_.device_memories()) {
    names.push_back(name_memory_(*memory.device, *memory.memory));
  }
  names_ = std::move(names);
  return names_;
}

LentRows RowLender::find(std::span<const std::string> keys, Claims& claims) {
  LentRows lent{.memories = names(), .items = {}, .pins = nullptr};
  const std::vector<RowCache::DeviceMemory> memories = cache_.device_memories();
  claims.reserve(keys.size());
  for (const std::string& key : keys) {
    lent.items.emplace_back();
    std::optional<RowCache::Claim> claim = cache_.find(key);
    if (!claim) continue;
    lent.items.back() = place_of(*claim, memories);
    if (lent.items.back()) claims.push_back(std::move(*claim));
  }
  return lent;
}

LentRows RowLender::lend(std::span<const std::string> keys) {
  const auto claims = std::make_shared<Claims>();
  LentRows lent = find(keys, *claims);
  for (const RowCache::Claim& claim : *claims) claim.slot().wait_for_rows();
  lent.pins = claims;
  return lent;
}

std::optional<LentRows> RowLender::try_lend(std::span<const std::string> keys) {
  const auto claims = std::make_shared<Claims>();
  LentRows lent = find(keys, *claims);
  const auto has_rows = [](const RowCache::Claim& claim) { return claim.slot().has_rows(); };
  if (!std::ranges::all_of(*claims, has_rows)) return std::nullopt;
  lent.pins = claims;
  return lent;
}

}  // namespace fovea
