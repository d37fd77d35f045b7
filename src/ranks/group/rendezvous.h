#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "fovea/communicator.h"
#include "ranks/transport/address.h"
#include "ranks/transport/message.h"
#include "ranks/transport/secret.h"
#include "ranks/transport/socket.h"

// How ranks connect to rank 0. Each proves to the other that it knows the secret of the group:
//
//   rank                     rank 0
//   kHello, its nonce   -->
//                       <--  kChallenge, its nonce
//   kProof              -->
//                       <--  kProof, or kFail
//
// When all ranks are connected, the hub sends kWelcome.

namespace fovea::ranks {

/// A message of the handshake with its nonce or proof.
struct HandshakeMessage {
  Message message;
  std::array<std::byte, 32> bytes{};
};

/// The side of rank 0: accepts connections, and finds out which of them are ranks. A connection
/// that sends nothing delays neither the others nor the time limit; of very many the oldest are
/// closed.
class Rendezvous {
 public:
  /// @param options must outlive this. @param secret that ranks have to prove.
  Rendezvous(const RankOptions& options, std::string secret);

  /// Waits for all other ranks. A failure is sent to those that are connected.
  /// @return their sockets by rank; that of rank 0 is closed.
  /// @throws Error(kInvalidArgument) for a rank that contradicts `options` or comes twice,
  /// Error(kDeadline) naming the ranks that did not come, Error(kUnavailable) for one that ended.
  [[nodiscard]] std::vector<FileDescriptor> accept_all(const Listener& listener);

 private:
  /// A connection in its handshake.
  struct Connection {
    FileDescriptor socket;
    HandshakeMessage incoming;
    std::size_t received = 0;  ///< bytes of `incoming`
    ProofInput proof_input;    ///< what the rank has to prove, after its hello
    bool has_sent_hello = false;
  };

  [[nodiscard]] std::vector<int> missing() const;
  /// Waits for sockets that can be read, once.
  void wait(const Listener& listener, Clock::time_point deadline);
  void add(FileDescriptor socket);
  /// Receives what a connection has sent meanwhile. @return whether its handshake goes on.
  [[nodiscard]] bool receive(Connection& connection);
  /// Answers the hello of a connection. @return whether its handshake goes on.
  [[nodiscard]] bool send_challenge(Connection& connection);
  /// Checks the proof of a connection, and sends the hub's proof or why it failed.
  /// @return whether the proof is right.
  [[nodiscard]] bool exchange_proofs(const Connection& connection) const;
  /// Makes a connection that of its rank.
  void admit(Connection& connection);

  const RankOptions& options_;
  std::string secret_;
  std::vector<FileDescriptor> sockets_;
  std::vector<Connection> connections_;  // the oldest first
};

/// The side of all other ranks: proves the secret to rank 0, and checks its proof.
/// @param socket connected to rank 0.
/// @throws Error(kInvalidArgument) if rank 0 has another secret, the error that rank 0 sends,
/// Error(kDeadline), Error(kUnavailable) if rank 0 has ended.
void shake_hands(int socket, const RankOptions& options, const std::string& secret,
                 Clock::time_point deadline);

}  // namespace fovea::ranks
