#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <cerrno>
#include <cstddef>
#include <span>

#include "core/file_descriptor.h"

namespace fovea {

/// As the system's send() and recv(): how many bytes were moved, or -1 with errno. Over a local
/// socket a copy of an open file may go beside the first of the bytes. Source: unix(7), SCM_RIGHTS.
///
/// Sends without waiting; a closed other end is EPIPE and no signal. @param file -1: none.
[[nodiscard]] ssize_t send_some(int socket, std::span<const std::byte> bytes,
                                int file = -1) noexcept;
/// @param file receives the first file that came beside the bytes; null: none is wanted. All others
///   are closed.
/// @param flags of recv(), for example MSG_DONTWAIT.
[[nodiscard]] ssize_t receive_some(int socket, std::span<std::byte> bytes, FileDescriptor* file,
                                   int flags) noexcept;

/// The end of an attempt to move all of some bytes.
enum class Transfer {
  kDone,
  kClosed,    ///< the other end is closed (EPIPE or ECONNRESET in errno), or errno says what failed
  kTimedOut,  ///< wait() returned false
};

/// Whether errno means that a socket that does not wait has no room, or no bytes, at the moment.
[[nodiscard]] inline bool is_not_ready() noexcept {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

/// Sends all of `bytes`, and `file` beside the first of them.
/// @param wait bool(short events): waits for an event of poll() on the socket, perhaps not until it
///   comes; false ends the attempt. It may throw.
template <class Wait>
[[nodiscard]] Transfer send_all(int socket, std::span<const std::byte> bytes, int file,
                                const Wait& wait) {
  while (!bytes.empty()) {
    const ssize_t sent = send_some(socket, bytes, file);
    if (sent < 0 && !is_not_ready()) return Transfer::kClosed;
    if (sent < 0) {
      if (!wait(POLLOUT)) return Transfer::kTimedOut;
      continue;
    }
    file = -1;
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
  return Transfer::kDone;
}

/// Fills all of `bytes`. @param file as in receive_some(). @param wait as in send_all().
template <class Wait>
[[nodiscard]] Transfer receive_all(int socket, std::span<std::byte> bytes, FileDescriptor* file,
                                   const Wait& wait) {
  while (!bytes.empty()) {
    const ssize_t received = receive_some(socket, bytes, file, MSG_DONTWAIT);
    if (received == 0) errno = EPIPE;
    if (received == 0 || (received < 0 && !is_not_ready())) return Transfer::kClosed;
    if (received < 0) {
      if (!wait(POLLIN)) return Transfer::kTimedOut;
      continue;
    }
    bytes = bytes.subspan(static_cast<std::size_t>(received));
  }
  return Transfer::kDone;
}

}  // namespace fovea
