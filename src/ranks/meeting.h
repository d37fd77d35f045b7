#pragma once

#include <cstddef>
#include <vector>

#include "fovea/communicator.h"
#include "ranks/address.h"
#include "ranks/message.h"
#include "ranks/socket.h"

namespace fovea::ranks {

/// Rank 0 while a group meets: takes connections, and learns which of them are ranks. Whoever has
/// connected and is silent keeps nobody waiting, neither others nor the time limit; of very many
/// the first go.
class Meeting {
 public:
  /// @param options must outlive this.
  explicit Meeting(const RankOptions& options);

  /// Waits for all other ranks. What goes wrong is told to those that are there.
  /// @return their sockets by rank; that of rank 0 is closed.
  /// @throws as connect_ranks().
  [[nodiscard]] std::vector<Descriptor> meet(const Listener& listener);

 private:
  /// Somebody who has connected, as long as it is not known whether that is a rank.
  struct Guest {
    Descriptor socket;
    Message hello;
    std::size_t received = 0;  ///< bytes of `hello`
  };

  [[nodiscard]] std::vector<int> missing() const;
  /// Waits for something to happen, once.
  void wait(const Listener& listener, Clock::time_point deadline);
  void welcome(Descriptor socket);
  /// Takes what a guest has said meanwhile. @return whether the guest stays one.
  [[nodiscard]] bool hear(Guest& guest);
  /// Makes a guest the rank that it says it is.
  void admit(Guest& guest);

  const RankOptions& options_;
  std::vector<Descriptor> sockets_;
  std::vector<Guest> guests_;  // by the time of their arrival
};

}  // namespace fovea::ranks
