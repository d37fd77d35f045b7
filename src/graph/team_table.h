#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "fovea/tower/device/device.h"
#include "fovea/tower/device/team.h"

namespace fovea {

/// Where the devices of a team meet on the host: each comes when its streams are idle and its
/// memory stands, and learns where the memory of the others is. One forward at a time; its members
/// are threads.
class TeamTable {
 public:
  /// A table for these devices, a member each, in their order.
  /// @param devices must outlive the table.
  /// @return null if they cannot be a team: one alone, too many, or devices that do not reach each
  /// other.
  /// @throws Error(kDevice), Error(kOutOfMemory).
  [[nodiscard]] static std::unique_ptr<TeamTable> make(std::span<Device* const> devices);

  [[nodiscard]] int size() const noexcept { return static_cast<int>(devices_.size()); }
  /// To be called before the members of the next forward come; those of the last one have ended.
  /// @throws Error(kOutOfMemory).
  void open();
  /// Returns when all members have come. @param arena that of this member.
  /// @throws Error(kUnavailable) if one has left, and as Interrupt::check.
  [[nodiscard]] Team join(int rank, std::byte* arena);
  /// Ends the waits of the other members, at the table and on their devices: a member cannot go on.
  void leave() noexcept;
  /// To be called when a forward has run. Members of the first one wait 30 seconds for each other,
  /// as libraries load kernels then, later ones a second.
  /// @throws Error(kUnavailable) if a member is lost: what the forward computed is not to be used.
  void check();

 private:
  explicit TeamTable(std::span<Device* const> devices);
  [[nodiscard]] bool is_lost() const noexcept;
  void throw_if_lost() const;

  std::vector<Device*> devices_;
  std::vector<Buffer> flags_;  // TeamFlags of each member
  Buffer lost_;                // one word on the host
  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<std::byte*, TeamFlags::kMaxMembers> arenas_{};
  int arrived_ = 0;
  std::atomic<bool> has_run_ = false;
};

}  // namespace fovea
