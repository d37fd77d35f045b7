#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "core/file_descriptor.h"

namespace fovea::serve {

/// A socket that listens, and whose accept() does not wait.
struct ListeningSocket {
  FileDescriptor descriptor;
  std::uint16_t port = 0;  ///< 0: a unix socket
};

/// @param host name or address, also an IPv6 address in brackets. @param port 0: any that is free.
/// @throws Error(kIo) with the system's reason.
[[nodiscard]] ListeningSocket listen_tcp(const std::string& host, std::uint16_t port);

/// The path of a unix socket; gone with this.
class SocketPath {
 public:
  SocketPath() = default;
  /// @param path at which a socket is bound.
  explicit SocketPath(std::string path);
  ~SocketPath() { remove(); }
  SocketPath(const SocketPath&) = delete;
  SocketPath& operator=(const SocketPath&) = delete;
  SocketPath(SocketPath&& other) noexcept;
  SocketPath& operator=(SocketPath&& other) noexcept;

 private:
  /// Unlinks the path, unless another socket has taken its place.
  void remove() noexcept;

  std::string path_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

/// Readable and writable for the owner and the group. A socket without a listener is
/// replaced. @throws Error(kIo) with the reason; nothing but a socket is ever removed.
[[nodiscard]] ListeningSocket listen_unix(const std::string& path);

/// An accepted connection.
struct Accepted {
  FileDescriptor descriptor;
  int family = 0;
  std::string peer;  ///< its address, or "unix"
  std::string
      client;  ///< whose share of the server it uses: the address, of IPv6 its first 64 bits
  bool is_own_user = false;  ///< a unix socket, connected to by this user or by root
};

/// Takes the next connection, if there is one. @param error errno, 0 if a connection was taken.
[[nodiscard]] Accepted accept_from(int listening, int& error);

}  // namespace fovea::serve
