#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "fovea/error.h"
#include "ranks/transport/socket.h"

// The messages of ranks and the hub. All of them are one build of the library on machines of one
// byte order: kMagic differs otherwise.

namespace fovea::ranks {

enum class MessageKind : std::uint32_t {
  kHello,      ///< rank to hub: `rank` of `size` ranks; a nonce follows
  kChallenge,  ///< hub to rank: a nonce follows
  kProof,      ///< rank to hub, then hub to rank: a proof follows
  kWelcome,  ///< hub to rank: all ranks are there; the shared memory comes with it, if there is any
  kGather,   ///< rank to hub: `bytes` of this piece, of `total` of the gather, are there
  kGathered,  ///< hub to rank: the pieces of all ranks are there
  kRaise,     ///< rank to hub, hub to all ranks: come to the next gather soon
  kFail,      ///< the group has failed: code `rank`, a text of `bytes` follows
  kLeave,     ///< rank to hub: it needs the group no longer
};

/// Raised by one whenever the protocol changes.
inline constexpr std::uint32_t kMagic = 0x464f5202;

/// Where there is no shared memory, the bytes of kGather (one piece) and kGathered (the pieces in
/// order of ranks) follow.
struct Message {
  std::uint32_t magic = kMagic;
  MessageKind kind = MessageKind::kHello;
  std::int32_t rank = 0;
  std::int32_t size = 0;
  std::uint64_t bytes = 0;
  std::uint64_t total = 0;
};

/// A message of any kind as it is sent.
template <class Sent>
[[nodiscard]] std::span<const std::byte> bytes_of(const Sent& message) noexcept {
  return std::as_bytes(std::span(&message, 1));
}

/// Whether bytes that came are a message of this build.
[[nodiscard]] inline bool is_ours(const Message& message) noexcept {
  return message.magic == kMagic && message.kind <= MessageKind::kLeave;
}

/// Receives a message. @return kClosed also for what is none of these messages.
[[nodiscard]] Transfer receive_message(int socket, Message& message, Clock::time_point deadline,
                                       FileDescriptor* descriptor = nullptr) noexcept;

/// Sends kFail with an error, as far as that is possible by the deadline.
void send_failure(int socket, const Error& error, Clock::time_point deadline) noexcept;
/// Receives what follows a kFail, and makes it printable(). @return nothing if it does not follow.
[[nodiscard]] std::optional<Error> receive_failure(int socket, const Message& message,
                                                   Clock::time_point deadline);

/// The code with this number, kInternal if there is none.
[[nodiscard]] ErrorCode error_code(std::int32_t number) noexcept;

/// "rank 2", "ranks 2, 5".
[[nodiscard]] std::string name_ranks(std::span<const int> ranks);

}  // namespace fovea::ranks
