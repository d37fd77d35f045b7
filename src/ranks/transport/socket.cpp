// Sends and receives whole messages under a deadline.
#include "ranks/transport/socket.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <limits>

#include "core/check.h"
#include "core/file.h"

namespace fovea::ranks {

namespace {

/// Waits for an event of a socket until a deadline.
auto wait_until(int socket, Clock::time_point deadline) noexcept {
  return [socket, deadline](short event) noexcept {
    pollfd waiting{.fd = socket, .events = event, .revents = 0};
    return poll(&waiting, 1, poll_timeout(deadline)) != 0 || Clock::now() < deadline;
  };
}

}  // namespace

Transfer send_all(int socket, std::span<const std::byte> bytes, Clock::time_point deadline,
                  int descriptor) noexcept {
  return fovea::send_all(socket, bytes, descriptor, wait_until(socket, deadline));
}

Transfer receive_all(int socket, std::span<std::byte> bytes, Clock::time_point deadline,
                     FileDescriptor* descriptor) noexcept {
  return fovea::receive_all(socket, bytes, descriptor, wait_until(socket, deadline));
}

ssize_t receive_now(int socket, std::span<std::byte> bytes) noexcept {
  const ssize_t received = receive_some(socket, bytes, nullptr, MSG_DONTWAIT);
  if (received > 0) return received;
  return received < 0 && is_not_ready() ? 0 : -1;
}

int poll_timeout(Clock::time_point deadline) noexcept {
  if (deadline == Clock::time_point::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, std::numeric_limits<int>::max()));
}

std::pair<FileDescriptor, FileDescriptor> socket_pair() {
  std::array<int, 2> ends{};
  FOVEA_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0, kIo,
              "cannot make a pair of sockets: ", system_reason());
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

}  // namespace fovea::ranks
