// Sends and receives whole messages under a deadline.
#include "ranks/transport/socket.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <system_error>

#include "core/check.h"
#include "core/local_socket.h"

namespace fovea::ranks {

namespace {

/// The bytes that one attempt moved, 0 if the socket is not ready, -1 if it is closed.
ssize_t outcome(ssize_t moved) noexcept {
  if (moved > 0) return moved;
  const bool again = moved < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
  return again ? 0 : -1;
}

/// Moves all bytes by `move(offset)`, waiting for `event` in between.
template <class Move>
Transfer move_all(int socket, std::size_t size, short event, Clock::time_point deadline,
                  Move&& move) noexcept {
  for (std::size_t offset = 0; offset < size;) {
    const ssize_t moved = move(offset);
    if (moved < 0) return Transfer::kClosed;
    offset += static_cast<std::size_t>(moved);
    if (moved > 0) continue;
    pollfd waiting{.fd = socket, .events = event, .revents = 0};
    if (poll(&waiting, 1, poll_timeout(deadline)) == 0 && Clock::now() >= deadline)
      return Transfer::kLate;
  }
  return Transfer::kDone;
}

}  // namespace

Transfer send_all(int socket, std::span<const std::byte> bytes, Clock::time_point deadline,
                  int descriptor) noexcept {
  return move_all(socket, bytes.size(), POLLOUT, deadline, [&](std::size_t offset) {
    return outcome(send_some(socket, bytes.subspan(offset), offset == 0 ? descriptor : -1));
  });
}

Transfer receive_all(int socket, std::span<std::byte> bytes, Clock::time_point deadline,
                     FileDescriptor* descriptor) noexcept {
  return move_all(socket, bytes.size(), POLLIN, deadline, [&](std::size_t offset) {
    return outcome(receive_some(socket, bytes.subspan(offset), descriptor, MSG_DONTWAIT));
  });
}

ssize_t receive_now(int socket, std::span<std::byte> bytes) noexcept {
  return outcome(receive_some(socket, bytes, nullptr, MSG_DONTWAIT));
}

int poll_timeout(Clock::time_point deadline) noexcept {
  if (deadline == Clock::time_point::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, std::numeric_limits<int>::max()));
}

std::pair<FileDescriptor, FileDescriptor> socket_pair() {
  std::array<int, 2> ends{};
  FOVEA_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0, kIo,
              "cannot make a pair of sockets: ", std::generic_category().message(errno));
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

}  // namespace fovea::ranks
