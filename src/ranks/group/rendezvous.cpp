// The handshake of ranks, both sides.
#include "ranks/group/rendezvous.h"

#include <poll.h>

#include <thread>
#include <utility>

#include "core/check.h"

namespace fovea::ranks {

namespace {

constexpr std::chrono::seconds kFailureTimeout{5};  // for a rank to receive a failure
constexpr std::chrono::milliseconds kRetryInterval{10};
constexpr std::size_t kMostConnections = 256;  // beyond the ranks that are missing

pollfd reading(int socket) { return {.fd = socket, .events = POLLIN, .revents = 0}; }

/// Receives the next message of rank 0. @param kind that the handshake expects.
HandshakeMessage receive_from_rank0(int socket, MessageKind kind, const RankOptions& options,
                                    Clock::time_point deadline) {
  HandshakeMessage incoming;
  Transfer transfer = receive_message(socket, incoming.message, deadline);
  if (transfer == Transfer::kDone && incoming.message.kind == MessageKind::kFail) {
    const std::optional<Error> failure = receive_failure(socket, incoming.message, deadline);
    if (failure) throw Error(*failure);
  }
  if (transfer == Transfer::kDone) transfer = receive_all(socket, incoming.bytes, deadline);
  FOVEA_CHECK(transfer != Transfer::kTimedOut, kDeadline, "rank 0 did not say within ",
              options.time_limit.count(), " ms that the group is complete");
  FOVEA_CHECK(transfer == Transfer::kDone && incoming.message.kind == kind, kUnavailable,
              "rank 0 has ended or left the group");
  return incoming;
}

}  // namespace

Rendezvous::Rendezvous(const RankOptions& options, std::string secret)
    : options_(options),
      secret_(std::move(secret)),
      sockets_(static_cast<std::size_t>(options.size)) {}

std::vector<FileDescriptor> Rendezvous::accept_all(const Listener& listener) {
  const Clock::time_point deadline = Clock::now() + options_.time_limit;
  try {
    while (!missing().empty()) wait(listener, deadline);
  } catch (const Error& error) {
    for (const FileDescriptor& socket : sockets_) {
      if (socket.is_open()) send_failure(socket.get(), error, Clock::now() + kFailureTimeout);
    }
    throw;
  }
  return std::move(sockets_);
}

std::vector<int> Rendezvous::missing() const {
  std::vector<int> ranks;
  for (int rank = 1; rank < options_.size; ++rank) {
    if (!sockets_[static_cast<std::size_t>(rank)].is_open()) ranks.push_back(rank);
  }
  return ranks;
}

void Rendezvous::wait(const Listener& listener, Clock::time_point deadline) {
  std::vector<pollfd> waiting;
  for (const FileDescriptor& socket : sockets_) waiting.push_back(reading(socket.get()));
  waiting.front().fd = listener.get();
  for (const Connection& connection : connections_) {
    waiting.push_back(reading(connection.socket.get()));
  }
  (void)poll(waiting.data(), waiting.size(), poll_timeout(deadline));
  FOVEA_CHECK(Clock::now() < deadline, kDeadline, name_ranks(missing()), " did not come to ",
              options_.rendezvous, " within ", options_.time_limit.count(), " ms");
  for (std::size_t rank = 1; rank < sockets_.size(); ++rank) {  // none sends before kWelcome
    FOVEA_CHECK(waiting[rank].revents == 0, kUnavailable, "rank ", rank, " has ended");
  }
  const auto readable = std::span(waiting).subspan(sockets_.size());
  for (std::size_t i = connections_.size(); i-- > 0;) {
    const bool goes_on = readable[i].revents == 0 || receive(connections_[i]);
    if (!goes_on) connections_.erase(connections_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  if (waiting.front().revents != 0) add(listener.accept());
}

void Rendezvous::add(FileDescriptor socket) {
  if (!socket.is_open()) {  // where no descriptor is left, poll() finds the connection still there
    std::this_thread::sleep_for(kRetryInterval);
    return;
  }
  if (connections_.size() >= sockets_.size() + kMostConnections) {
    connections_.erase(connections_.begin());
  }
  connections_.push_back({.socket = std::move(socket), .incoming = {}, .proof_input = {}});
}

bool Rendezvous::receive(Connection& connection) {
  const auto bytes = std::as_writable_bytes(std::span(&connection.incoming, 1));
  const ssize_t moved = receive_now(connection.socket.get(), bytes.subspan(connection.received));
  if (moved < 0) return false;
  connection.received += static_cast<std::size_t>(moved);
  if (connection.received < bytes.size()) return true;
  connection.received = 0;
  if (!is_ours(connection.incoming.message)) return false;
  if (!connection.has_sent_hello) return send_challenge(connection);
  if (exchange_proofs(connection)) admit(connection);
  return false;
}

bool Rendezvous::send_challenge(Connection& connection) {
  const Message& hello = connection.incoming.message;
  if (hello.kind != MessageKind::kHello) return false;
  connection.has_sent_hello = true;
  connection.proof_input = {.rank = hello.rank,
                            .size = hello.size,
                            .hub_nonce = make_nonce(),
                            .rank_nonce = connection.incoming.bytes};
  const HandshakeMessage challenge{.message = {.kind = MessageKind::kChallenge},
                                   .bytes = connection.proof_input.hub_nonce};
  return send_all(connection.socket.get(), bytes_of(challenge), Clock::now()) == Transfer::kDone;
}

bool Rendezvous::exchange_proofs(const Connection& connection) const {
  ProofInput input = connection.proof_input;
  if (connection.incoming.message.kind != MessageKind::kProof) return false;
  if (!is_equal(connection.incoming.bytes, prove(secret_, input))) {
    const Error stranger(ErrorCode::kInvalidArgument,
                         cat("the secret of rank ", input.rank, " is not that of rank 0"));
    send_failure(connection.socket.get(), stranger, Clock::now());
    return false;  // the group goes on waiting for the rank that knows it
  }
  input.prover = Prover::kHub;
  const HandshakeMessage proof{.message = {.kind = MessageKind::kProof},
                               .bytes = prove(secret_, input)};
  return send_all(connection.socket.get(), bytes_of(proof), Clock::now()) == Transfer::kDone;
}

void Rendezvous::admit(Connection& connection) {
  const auto [rank, size] = std::pair(connection.proof_input.rank, connection.proof_input.size);
  const auto refuse = [&](const std::string& reason) {
    const Error error(ErrorCode::kInvalidArgument, reason);
    send_failure(connection.socket.get(), error, Clock::now() + kFailureTimeout);
    throw Error(error);
  };
  if (size != options_.size) {
    refuse(cat("rank 0 belongs to ", options_.size, " ranks, rank ", rank, " to ", size));
  }
  const bool is_other = rank > 0 && rank < options_.size;
  if (!is_other || sockets_[static_cast<std::size_t>(rank)].is_open()) {
    refuse(cat("two processes came to ", options_.rendezvous, " as rank ", rank));
  }
  sockets_[static_cast<std::size_t>(rank)] = std::move(connection.socket);
}

void shake_hands(int socket, const RankOptions& options, const std::string& secret,
                 Clock::time_point deadline) {
  ProofInput input{
      .rank = options.rank, .size = options.size, .hub_nonce = {}, .rank_nonce = make_nonce()};
  const HandshakeMessage hello{.message = {.rank = options.rank, .size = options.size},
                               .bytes = input.rank_nonce};
  // Receiving finds out what goes wrong in sending.
  (void)send_all(socket, bytes_of(hello), deadline);
  input.hub_nonce = receive_from_rank0(socket, MessageKind::kChallenge, options, deadline).bytes;
  const HandshakeMessage proof{.message = {.kind = MessageKind::kProof},
                               .bytes = prove(secret, input)};
  (void)send_all(socket, bytes_of(proof), deadline);
  input.prover = Prover::kHub;
  const HandshakeMessage answer =
      receive_from_rank0(socket, MessageKind::kProof, options, deadline);
  FOVEA_CHECK(is_equal(answer.bytes, prove(secret, input)), kInvalidArgument, "whoever listens at ",
              options.rendezvous, " does not know the secret of this rank");
}

}  // namespace fovea::ranks
