// Sends and receives whole messages under a deadline.
#include "ranks/socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <system_error>

#include "core/check.h"

namespace fovea::ranks {

namespace {

/// What one attempt moved: a number of bytes, 0 if the socket is not ready, -1 if it is closed.
ssize_t outcome(ssize_t moved) noexcept {
  if (moved > 0) return moved;
  const bool again = moved < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
  return again ? 0 : -1;
}

ssize_t send_some(int socket, std::span<const std::byte> bytes, int descriptor) noexcept {
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};  // NOLINT: sendmsg only reads
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(rights), &descriptor, sizeof(int));
  }
  return outcome(sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT));
}

ssize_t receive_some(int socket, std::span<std::byte> bytes, Descriptor* descriptor) noexcept {
  iovec part{bytes.data(), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t received = outcome(recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC));
  const cmsghdr* const rights = received > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (rights != nullptr && rights->cmsg_type == SCM_RIGHTS) {
    int came = -1;
    std::memcpy(&came, CMSG_DATA(rights), sizeof(int));
    Descriptor owned(came);
    if (descriptor != nullptr) *descriptor = std::move(owned);
  }
  return received;
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

void Descriptor::close() noexcept {
  if (value_ >= 0) (void)::close(std::exchange(value_, -1));
}

Transfer send_all(int socket, std::span<const std::byte> bytes, Clock::time_point deadline,
                  int descriptor) noexcept {
  return move_all(socket, bytes.size(), POLLOUT, deadline, [&](std::size_t offset) {
    return send_some(socket, bytes.subspan(offset), offset == 0 ? descriptor : -1);
  });
}

Transfer receive_all(int socket, std::span<std::byte> bytes, Clock::time_point deadline,
                     Descriptor* descriptor) noexcept {
  return move_all(socket, bytes.size(), POLLIN, deadline, [&](std::size_t offset) {
    return receive_some(socket, bytes.subspan(offset), descriptor);
  });
}

ssize_t receive_now(int socket, std::span<std::byte> bytes) noexcept {
  return receive_some(socket, bytes, nullptr);
}

int poll_timeout(Clock::time_point deadline) noexcept {
  if (deadline == Clock::time_point::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, std::numeric_limits<int>::max()));
}

std::pair<Descriptor, Descriptor> socket_pair() {
  std::array<int, 2> ends{};
  FOVEA_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0, kIo,
              "cannot make a pair of sockets: ", std::generic_category().message(errno));
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

}  // namespace fovea::ranks
