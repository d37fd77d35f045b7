#pragma once

#include <string>

#include "fovea/communicator.h"
#include "ranks/message.h"
#include "ranks/secret.h"

namespace fovea::ranks {

/// A message of an introduction with its nonce or proof.
struct Letter {
  Message message;
  std::array<std::byte, 32> bytes{};
};

[[nodiscard]] inline std::span<const std::byte> bytes_of(const Letter& letter) noexcept {
  return std::as_bytes(std::span(&letter, 1));
}

/// Tells rank 0 who this is: proves the secret, and has it proved.
/// @throws Error(kInvalidArgument) if the secret is another there, what rank 0 says,
/// Error(kDeadline), Error(kUnavailable) if rank 0 has ended.
void introduce(int socket, const RankOptions& options, const std::string& secret,
               Clock::time_point deadline);

}  // namespace fovea::ranks
