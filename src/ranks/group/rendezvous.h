#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "fovea/communicator.h"
#include "ranks/transport/address.h"
#include "ranks/transport/message.h"
#include "ranks/transport/secret.h"
#include "ranks/transport/socket.h"

namespace fovea::ranks {

/// A message of an introduction with its nonce or proof.
struct Letter {
  Message message;
  std::array<std::byte, 32> bytes{};
};

[[nodiscard]] inline std::span<const std::byte> bytes_of(const Letter& letter) noexcept {
  return std::as_bytes(std::span(&letter, 1));
}

/// Rank 0 while a group meets: takes connections, and learns which of them are ranks. Whoever has
/// connected and is silent keeps nobody waiting, neither others nor the time limit; of very many
/// the first go.
class Meeting {
 public:
  /// @param options must outlive this. @param secret that ranks have to prove.
  Meeting(const RankOptions& options, std::string secret);

  /// Waits for all other ranks. What goes wrong is told to those that are there.
  /// @return their sockets by rank; that of rank 0 is closed.
  /// @throws as connect_ranks().
  [[nodiscard]] std::vector<FileDescriptor> meet(const Listener& listener);

 private:
  /// Somebody who has connected, as long as it is not known whether that is a rank.
  struct Guest {
    FileDescriptor socket;
    Letter letter;
    std::size_t received = 0;  ///< bytes of `letter`
    Claim claim;               ///< of the rank, as far as it is known
    bool has_said_hello = false;
  };

  [[nodiscard]] std::vector<int> missing() const;
  /// Waits for something to happen, once.
  void wait(const Listener& listener, Clock::time_point deadline);
  void welcome(FileDescriptor socket);
  /// Takes what a guest has said meanwhile. @return whether the guest stays one.
  [[nodiscard]] bool hear(Guest& guest);
  /// Whether a guest that has said hello got its challenge.
  [[nodiscard]] bool challenge(Guest& guest);
  /// Whether a guest has proved the secret; it has the hub's proof then, or knows that it failed.
  [[nodiscard]] bool has_proved(const Guest& guest) const;
  /// Makes a guest the rank that it says it is.
  void admit(Guest& guest);

  const RankOptions& options_;
  std::string secret_;
  std::vector<FileDescriptor> sockets_;
  std::vector<Guest> guests_;  // by the time of their arrival
};

/// Tells rank 0 who this is: proves the secret, and has it proved.
/// @throws Error(kInvalidArgument) if the secret is another there, what rank 0 says,
/// Error(kDeadline), Error(kUnavailable) if rank 0 has ended.
void introduce(int socket, const RankOptions& options, const std::string& secret,
               Clock::time_point deadline);

}  // namespace fovea::ranks
