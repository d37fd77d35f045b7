// How rank 0 tells ranks from others.
#include "ranks/group/rendezvous.h"

#include <poll.h>

#include <algorithm>
#include <span>
#include <utility>

#include "core/check.h"

namespace fovea::ranks {

namespace {

constexpr std::chrono::seconds kTimeToTell{5};  // for a rank to hear what went wrong
constexpr std::size_t kMostGuests = 256;        // beyond the ranks that are missing

pollfd reading(int socket) { return {.fd = socket, .events = POLLIN, .revents = 0}; }

/// What rank 0 says next. @param kind what it has to be.
Letter hear(int socket, MessageKind kind, const RankOptions& options, Clock::time_point deadline) {
  Letter letter;
  Transfer transfer = receive_message(socket, letter.message, deadline);
  if (transfer == Transfer::kDone && letter.message.kind == MessageKind::kFail) {
    const std::optional<Error> failure = receive_failure(socket, letter.message, deadline);
    if (failure) throw Error(*failure);
  }
  if (transfer == Transfer::kDone) transfer = receive_all(socket, letter.bytes, deadline);
  FOVEA_CHECK(transfer != Transfer::kLate, kDeadline, "rank 0 did not say within ",
              options.time_limit.count(), " ms that the group is complete");
  FOVEA_CHECK(transfer == Transfer::kDone && letter.message.kind == kind, kUnavailable,
              "rank 0 has ended or left the group");
  return letter;
}

}  // namespace

Meeting::Meeting(const RankOptions& options, std::string secret)
    : options_(options),
      secret_(std::move(secret)),
      sockets_(static_cast<std::size_t>(options.size)) {}

std::vector<FileDescriptor> Meeting::meet(const Listener& listener) {
  const Clock::time_point deadline = Clock::now() + options_.time_limit;
  try {
    while (!missing().empty()) wait(listener, deadline);
  } catch (const Error& error) {
    for (const FileDescriptor& socket : sockets_) {
      if (socket.is_open()) send_failure(socket.get(), error, Clock::now() + kTimeToTell);
    }
    throw;
  }
  return std::move(sockets_);
}

std::vector<int> Meeting::missing() const {
  std::vector<int> ranks;
  for (int rank = 1; rank < options_.size; ++rank) {
    if (!sockets_[static_cast<std::size_t>(rank)].is_open()) ranks.push_back(rank);
  }
  return ranks;
}

void Meeting::wait(const Listener& listener, Clock::time_point deadline) {
  std::vector<pollfd> waiting;
  for (const FileDescriptor& socket : sockets_) waiting.push_back(reading(socket.get()));
  waiting.front().fd = listener.get();
  for (const Guest& guest : guests_) waiting.push_back(reading(guest.socket.get()));
  (void)poll(waiting.data(), waiting.size(), poll_timeout(deadline));
  FOVEA_CHECK(Clock::now() < deadline, kDeadline, name_ranks(missing()), " did not come to ",
              options_.rendezvous, " within ", options_.time_limit.count(), " ms");
  for (std::size_t rank = 1; rank < sockets_.size(); ++rank) {  // nobody has anything to say yet
    FOVEA_CHECK(waiting[rank].revents == 0, kUnavailable, "rank ", rank, " has ended");
  }
  const auto spoken = std::span(waiting).subspan(sockets_.size());
  for (std::size_t i = guests_.size(); i-- > 0;) {
    const bool stays = spoken[i].revents == 0 || hear(guests_[i]);
    if (!stays) guests_.erase(guests_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  if (waiting.front().revents != 0) welcome(listener.accept());
}

void Meeting::welcome(FileDescriptor socket) {
  if (!socket.is_open()) return;
  if (guests_.size() >= sockets_.size() + kMostGuests) guests_.erase(guests_.begin());
  guests_.push_back({.socket = std::move(socket), .letter = {}, .claim = {}});
}

bool Meeting::hear(Guest& guest) {
  const auto letter = std::as_writable_bytes(std::span(&guest.letter, 1));
  const ssize_t moved = receive_now(guest.socket.get(), letter.subspan(guest.received));
  if (moved < 0) return false;
  guest.received += static_cast<std::size_t>(moved);
  if (guest.received < letter.size()) return true;
  guest.received = 0;
  if (!is_ours(guest.letter.message)) return false;
  if (!guest.has_said_hello) return challenge(guest);
  if (has_proved(guest)) admit(guest);
  return false;
}

bool Meeting::challenge(Guest& guest) {
  const Message& hello = guest.letter.message;
  if (hello.kind != MessageKind::kHello) return false;
  guest.has_said_hello = true;
  guest.claim = {.rank = hello.rank,
                 .size = hello.size,
                 .of_hub = make_nonce(),
                 .of_rank = guest.letter.bytes};
  const Letter challenge{.message = {.kind = MessageKind::kChallenge}, .bytes = guest.claim.of_hub};
  return send_all(guest.socket.get(), bytes_of(challenge), Clock::now()) == Transfer::kDone;
}

bool Meeting::has_proved(const Guest& guest) const {
  Claim claim = guest.claim;
  if (guest.letter.message.kind != MessageKind::kProof) return false;
  if (!is_same(guest.letter.bytes, prove(secret_, claim))) {
    const Error stranger(ErrorCode::kInvalidArgument,
                         cat("the secret of rank ", claim.rank, " is not that of rank 0"));
    send_failure(guest.socket.get(), stranger, Clock::now());  // the group waits for the right one
    return false;
  }
  claim.side = Side::kHub;
  const Letter proof{.message = {.kind = MessageKind::kProof}, .bytes = prove(secret_, claim)};
  return send_all(guest.socket.get(), bytes_of(proof), Clock::now()) == Transfer::kDone;
}

void Meeting::admit(Guest& guest) {
  const Claim& hello = guest.claim;
  const auto refuse = [&](const Error& error) {
    send_failure(guest.socket.get(), error, Clock::now() + kTimeToTell);
    throw Error(error);
  };
  if (hello.size != options_.size) {
    refuse(Error(
        ErrorCode::kInvalidArgument,
        cat("rank 0 belongs to ", options_.size, " ranks, rank ", hello.rank, " to ", hello.size)));
  }
  const bool is_other = hello.rank > 0 && hello.rank < options_.size;
  if (!is_other || sockets_[static_cast<std::size_t>(hello.rank)].is_open()) {
    refuse(Error(ErrorCode::kInvalidArgument,
                 cat("two processes came to ", options_.rendezvous, " as rank ", hello.rank)));
  }
  sockets_[static_cast<std::size_t>(hello.rank)] = std::move(guest.socket);
}

void introduce(int socket, const RankOptions& options, const std::string& secret,
               Clock::time_point deadline) {
  Claim claim{.rank = options.rank, .size = options.size, .of_hub = {}, .of_rank = make_nonce()};
  const Letter hello{.message = {.rank = options.rank, .size = options.size},
                     .bytes = claim.of_rank};
  // What goes wrong is heard.
  (void)send_all(socket, bytes_of(hello), deadline);
  claim.of_hub = hear(socket, MessageKind::kChallenge, options, deadline).bytes;
  const Letter proof{.message = {.kind = MessageKind::kProof}, .bytes = prove(secret, claim)};
  (void)send_all(socket, bytes_of(proof), deadline);
  claim.side = Side::kHub;
  const Letter answer = hear(socket, MessageKind::kProof, options, deadline);
  FOVEA_CHECK(is_same(answer.bytes, prove(secret, claim)), kInvalidArgument, "whoever listens at ",
              options.rendezvous, " does not know the secret of this rank");
}

}  // namespace fovea::ranks
