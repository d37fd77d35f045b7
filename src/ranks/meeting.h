#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "fovea/communicator.h"
#include "ranks/address.h"
#include "ranks/introduction.h"
#include "ranks/socket.h"

namespace fovea::ranks {

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

}  // namespace fovea::ranks
