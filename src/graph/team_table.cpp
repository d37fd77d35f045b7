// Members of a team before they submit a forward together.
#include "graph/team_table.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "core/check.h"
#include "core/interrupt.h"

namespace fovea {

namespace {

constexpr std::uint32_t kTimeoutMs = 1000;
constexpr std::uint32_t kFirstTimeoutMs = 30'000;  // libraries of a GPU may be read from a disk

}  // namespace

std::unique_ptr<TeamTable> TeamTable::make(std::span<Device* const> devices) {
  if (devices.size() < 2 || devices.size() > std::size_t{TeamFlags::kMaxMembers}) return nullptr;
  for (Device* const device : devices) {
    for (const Device* const other : devices) {
      if (!device->reach(*other)) return nullptr;
    }
  }
  return std::unique_ptr<TeamTable>(new TeamTable(devices));
}

TeamTable::TeamTable(std::span<Device* const> devices)
    : devices_(devices.begin(), devices.end()),
      lost_(devices.front()->allocate_host(sizeof(std::uint32_t))) {
  leave();  // the flags are made by open()
}

bool TeamTable::is_lost() const noexcept {
  return std::atomic_ref(*reinterpret_cast<std::uint32_t*>(lost_.data())).load() != 0;
}

void TeamTable::open() {
  arrived_ = 0;
  if (!is_lost()) return;
  flags_.clear();
  for (Device* const device : devices_) flags_.push_back(device->allocate(sizeof(TeamFlags)));
  std::atomic_ref(*reinterpret_cast<std::uint32_t*>(lost_.data())).store(0);
}

Team TeamTable::join(int rank, std::byte* arena) {
  std::unique_lock lock(mutex_);
  arenas_[static_cast<std::size_t>(rank)] = arena;
  ++arrived_;
  changed_.notify_all();
  wait_under_interrupt(changed_, lock, [&] { return arrived_ == size() || is_lost(); });
  throw_if_lost();
  Team team{.size = size(),
            .rank = rank,
            .is_lost = reinterpret_cast<std::uint32_t*>(lost_.data()),
            .timeout_ms = has_run_ ? kTimeoutMs : kFirstTimeoutMs};
  for (std::size_t member = 0; member < devices_.size(); ++member) {
    const auto own = reinterpret_cast<std::uintptr_t>(arena);
    team.distance[member] =
        static_cast<std::ptrdiff_t>(reinterpret_cast<std::uintptr_t>(arenas_[member]) - own);
    team.flags[member] = reinterpret_cast<TeamFlags*>(flags_[member].data());
  }
  return team;
}

void TeamTable::leave() noexcept {
  const std::lock_guard lock(mutex_);
  std::atomic_ref(*reinterpret_cast<std::uint32_t*>(lost_.data())).store(1);
  changed_.notify_all();
}

void TeamTable::throw_if_lost() const { FOVEA_CHECK(!is_lost(), kUnavailable, kLostMember); }

void TeamTable::check() {
  throw_if_lost();
  has_run_ = true;
}

}  // namespace fovea
