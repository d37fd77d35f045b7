#pragma once

#include <string>

#include "ranks/transport/socket.h"

namespace fovea::ranks {

/// The place where ranks meet: a path, or a host and a port.
struct Address {
  std::string text;  ///< as it was given
  std::string path;  ///< empty: host and port
  std::string host;
  std::string port;

  [[nodiscard]] bool is_file() const noexcept { return !path.empty(); }
};

/// Reads "file:///PATH" or "tcp://HOST:PORT"; HOST may be an IPv6 address in brackets.
/// @throws Error(kInvalidArgument).
[[nodiscard]] Address parse_address(const std::string& text);

/// Whether processes of other hosts cannot reach an address: a file, or a host whose addresses are
/// all loopback ones. A host without an address may be anywhere.
[[nodiscard]] bool is_local(const Address& address);

/// A socket that takes connections. The file of a local one is removed in the destructor.
class Listener {
 public:
  /// A file left by a group whose rank 0 was killed gives way.
  /// @throws Error(kInvalidArgument) if another group meets there, or the file is no socket,
  /// Error(kIo) with the system's reason.
  explicit Listener(const Address& address);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  [[nodiscard]] int get() const noexcept { return socket_.get(); }
  /// The next connection of a process of this user; closed if there is none.
  [[nodiscard]] FileDescriptor accept() const noexcept;

 private:
  std::string path_;  // empty: nothing to remove
  FileDescriptor socket_;
};

/// Connects to a listener, which may still have to come, until `deadline`.
/// @return a closed one if there is none in time.
/// @throws Error(kIo) if the listener is a process of another user.
[[nodiscard]] FileDescriptor connect(const Address& address, Clock::time_point deadline);

/// Removes the file of an address if no process listens there any more, nor a moment later.
void remove_stale(const Address& address) noexcept;

}  // namespace fovea::ranks
