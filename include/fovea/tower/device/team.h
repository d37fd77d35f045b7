#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace fovea {

/// By what members of a team wait for each other: one of each member, zeroed before its first
/// forward, in memory of its device.
struct TeamFlags {
  static constexpr int kMaxMembers = 8;
  /// How often each member has come; written by that member.
  std::array<std::uint32_t, kMaxMembers> arrived;
  std::uint32_t meetings;  ///< how often this member has come
  std::uint32_t is_lost;   ///< not 0: this member waits no more
};

/// What Error(kUnavailable) says where a member is lost.
inline constexpr const char* kLostMember =
    "a device of those that compute an image together could not go on";

/// The tokens of a unit that one member of a team computes: members have equally many, one after
/// the other, but for the last ones, which have what is left.
struct TeamPart {
  int rank = 0;
  int size = 1;  ///< 1: all tokens, there is no team

  /// Consecutive tokens.
  struct Tokens {
    std::int64_t first = 0;
    std::int64_t count = 0;
  };
  /// Tokens that a member has room for: a multiple of 16, so that what kernels store as one piece
  /// is of one member.
  [[nodiscard]] constexpr std::int64_t room(std::int64_t tokens) const noexcept {
    constexpr std::int64_t kMultiple = 16;
    const std::int64_t each = (tokens + size - 1) / size;
    return size == 1 ? tokens : (each + kMultiple - 1) / kMultiple * kMultiple;
  }
  /// Those of this member, of `tokens` tokens of a unit.
  [[nodiscard]] constexpr Tokens of(std::int64_t tokens) const noexcept {
    const std::int64_t each = room(tokens);
    const std::int64_t first = std::min(rank * each, tokens);
    return {first, std::min(each, tokens - first)};
  }
};

/// Devices that compute one forward together, as one of them sees it. The rows of every tensor are
/// cut into equal parts, one after the other, of which each member has one; all but the last part
/// hold live rows alone. Rows meet in attention only: there each member computes its part of the
/// heads, of all rows (ops/projected_attention.h). All members submit the same ops, of the same
/// shapes, with arenas of the same size: what one has at an offset of its arena, the others have at
/// the same offset of theirs, and reach it there.
struct Team {
  int size = 1;
  int rank = 0;
  /// Bytes from the arena of this member to that of each, in addresses of this process.
  std::array<std::ptrdiff_t, TeamFlags::kMaxMembers> distance = {};
  std::array<TeamFlags*, TeamFlags::kMaxMembers> flags = {};
  /// Host memory that all devices reach: not 0 once a member is lost, and none waits any more. Who
  /// waits in vain writes it, and who cannot go on.
  std::uint32_t* is_lost = nullptr;
  std::uint32_t timeout_ms = 1000;  ///< of a wait on a GPU

  /// Where `member` has what this one has at `own`, in the arena.
  [[nodiscard]] std::byte* at(int member, std::byte* own) const noexcept {
    return own + distance[static_cast<std::size_t>(member)];
  }
};

}  // namespace fovea
