// The thread that receives the messages of all ranks.
#include "ranks/group/hub.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/blocked_signals.h"
#include "core/check.h"
#include "ranks/transport/shared_memory.h"

namespace fovea::ranks {

namespace {

constexpr std::chrono::seconds kShutdownTimeout{2};  // for a rank to receive why the group ended

}  // namespace

Hub::Hub(std::vector<FileDescriptor> sockets, const GroupOptions& options) : options_(options) {
  for (FileDescriptor& socket : sockets) peers_.push_back({.socket = std::move(socket)});
  FileDescriptor memory;
  if (options.shares_memory) memory = SharedMemory::create(options.size);
  thread_ = std::jthread([this, memory = std::move(memory)]() mutable { run(std::move(memory)); });
}

void Hub::run(FileDescriptor memory) noexcept {
  const BlockedSignals none;
  try {
    send_welcome(memory);
    memory.reset();
    while (!has_ended_) {
      for (const int rank : wait()) {
        if (!has_ended_) serve(rank);
      }
      if (!has_ended_) check_gather();
    }
  } catch (...) {  // no memory for a message: the ranks see that the connection is closed
  }
  close_connections();
}

void Hub::send_welcome(const FileDescriptor& memory) {
  const Message message{.kind = MessageKind::kWelcome, .size = options_.size};
  for (int rank = 0; rank < options_.size && !has_ended_; ++rank) {
    send(rank, bytes_of(message), memory.get());
  }
}

std::vector<int> Hub::wait() {
  std::vector<pollfd> sockets;
  for (const Peer& peer : peers_) {  // poll() passes over those that are closed
    sockets.push_back({.fd = peer.socket.get(), .events = POLLIN, .revents = 0});
  }
  std::vector<int> ready;
  if (poll(sockets.data(), sockets.size(), poll_timeout(gather_deadline_)) <= 0) return ready;
  for (int rank = 0; rank < options_.size; ++rank) {
    if (sockets[static_cast<std::size_t>(rank)].revents != 0) ready.push_back(rank);
  }
  return ready;
}

void Hub::serve(int rank) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  Message message;
  const Transfer transfer = receive_message(peer.socket.get(), message, deadline());
  if (transfer == Transfer::kClosed && peer.has_left) return peer.socket.reset();
  if (!succeeded(rank, transfer)) return;
  if (message.kind == MessageKind::kGather) return serve_gather(rank, message);
  if (message.kind == MessageKind::kRaise) {
    for (int other = 0; other < options_.size && !has_ended_; ++other) {
      if (!peers_[static_cast<std::size_t>(other)].has_left) send(other, bytes_of(message));
    }
  } else if (message.kind == MessageKind::kFail) {
    const std::optional<Error> error = receive_failure(peer.socket.get(), message, deadline());
    if (!error) return (void)succeeded(rank, Transfer::kClosed);
    fail(Error(error->code(), cat("rank ", rank, ": ", error->what())));
  } else if (message.kind == MessageKind::kLeave) {
    peer.has_left = true;
    has_ended_ = rank == 0;
  }
}

void Hub::serve_gather(int rank, const Message& message) {
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  if (first_arrival_ < 0) {
    first_arrival_ = rank;
    gather_ = message;
    gather_deadline_ = deadline();
    if (!options_.shares_memory) {
      pieces_.resize(std::min(message.bytes, kPieceBytes) * peers_.size());
    }
  }
  if (message.total != gather_.total || message.bytes != gather_.bytes ||
      message.bytes > kPieceBytes) {
    return fail(Error(ErrorCode::kInvalidArgument,
                      cat("rank ", rank, " gathers ", message.total, " bytes, rank ",
                          first_arrival_, " ", gather_.total)));
  }
  if (!options_.shares_memory) {
    const auto piece =
        std::span(pieces_).subspan(static_cast<std::size_t>(rank) * message.bytes, message.bytes);
    if (!succeeded(rank, receive_all(peer.socket.get(), piece, deadline()))) return;
  }
  peer.has_arrived = true;
  if (std::ranges::all_of(peers_, &Peer::has_arrived)) complete_gather();
}

void Hub::complete_gather() {
  const Message message{
      .kind = MessageKind::kGathered, .bytes = gather_.bytes, .total = gather_.total};
  for (int rank = 0; rank < options_.size && !has_ended_; ++rank) {
    peers_[static_cast<std::size_t>(rank)].has_arrived = false;
    send(rank, bytes_of(message));
    if (!options_.shares_memory && !has_ended_) send(rank, pieces_);
  }
  first_arrival_ = -1;
  gather_deadline_ = Clock::time_point::max();
}

void Hub::check_gather() {
  if (first_arrival_ < 0) return;
  std::vector<int> missing;
  std::vector<int> left;
  for (int rank = 0; rank < options_.size; ++rank) {
    const Peer& peer = peers_[static_cast<std::size_t>(rank)];
    if (!peer.has_arrived) missing.push_back(rank);
    if (!peer.has_arrived && peer.has_left) left.push_back(rank);
  }
  if (!left.empty()) {
    fail(Error(ErrorCode::kUnavailable, name_ranks(left) + " left the group before a gather"));
  } else if (Clock::now() >= gather_deadline_) {
    fail(Error(ErrorCode::kDeadline, cat(name_ranks(missing), " did not come to a gather within ",
                                         options_.time_limit.count(), " ms")));
  }
}

void Hub::send(int rank, std::span<const std::byte> bytes, int descriptor) {
  const int socket = peers_[static_cast<std::size_t>(rank)].socket.get();
  (void)succeeded(rank, send_all(socket, bytes, deadline(), descriptor));
}

bool Hub::succeeded(int rank, Transfer transfer) {
  if (transfer == Transfer::kDone) return true;
  const bool gone = transfer == Transfer::kClosed;
  fail(Error(gone ? ErrorCode::kUnavailable : ErrorCode::kDeadline,
             cat("rank ", rank, gone ? " has ended" : " is connected, but takes no part")));
  return false;
}

void Hub::fail(const Error& error) noexcept {
  if (std::exchange(has_ended_, true)) return;
  for (const Peer& peer : peers_) {
    if (peer.socket.is_open())
      send_failure(peer.socket.get(), error, Clock::now() + kShutdownTimeout);
  }
}

void Hub::close_connections() noexcept {
  const Clock::time_point end = Clock::now() + kShutdownTimeout;
  for (const Peer& peer : peers_) {
    if (peer.socket.is_open()) (void)shutdown(peer.socket.get(), SHUT_WR);
  }
  for (Peer& peer : peers_) {  // a socket closed over unread bytes takes back what it has sent
    std::array<std::byte, 4096> unread;
    while (peer.socket.is_open() &&
           receive_all(peer.socket.get(), unread, end) == Transfer::kDone) {
    }
    peer.socket.reset();
  }
}

}  // namespace fovea::ranks
