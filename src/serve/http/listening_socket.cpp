#include "serve/http/listening_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>
#include <utility>

#include "fovea/error.h"

namespace fovea::serve {
namespace {

constexpr mode_t kSocketMode = 0660;

Error io_error(const std::string& what, int error) {
  return {ErrorCode::kIo, what + ": " + std::generic_category().message(error)};
}

const sockaddr* address_of(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

/// @return -1 with errno where there is none.
FileDescriptor make_socket(int family) {
  return FileDescriptor(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

FileDescriptor make_unix_socket(const std::string& path) {
  FileDescriptor descriptor = make_socket(AF_UNIX);
  if (descriptor.get() < 0) throw io_error("unix socket " + path, errno);
  return descriptor;
}

struct FreeAddresses {
  void operator()(addrinfo* list) const noexcept { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Addresses resolve(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error == EAI_SYSTEM) throw io_error("host " + host, errno);
  if (error != 0) throw Error(ErrorCode::kIo, "host " + host + ": " + gai_strerror(error));
  return Addresses(found);
}

/// @return 0, or errno.
int bind_and_listen(const FileDescriptor& descriptor, const sockaddr* address, socklen_t size) {
  if (bind(descriptor.get(), address, size) != 0) return errno;
  return listen(descriptor.get(), SOMAXCONN) == 0 ? 0 : errno;
}

std::uint16_t port_of(const FileDescriptor& descriptor) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(descriptor.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw io_error("port", errno);
  }
  // sin6_port lies where sin_port does.
  return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

sockaddr_un unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    throw Error(ErrorCode::kIo, "unix socket " + path + ": a path has at most " +
                                    std::to_string(sizeof(address.sun_path) - 1) + " bytes");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

/// Removes a socket whose server has gone.
void remove_stale(const std::string& path, const sockaddr_un& address) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) return;
  if (!S_ISSOCK(status.st_mode)) {
    throw Error(ErrorCode::kIo, "unix socket " + path + ": there is a file that is no socket");
  }
  const FileDescriptor probe = make_unix_socket(path);
  const bool is_answered = connect(probe.get(), address_of(address), sizeof(address)) == 0;
  // EAGAIN: a server listens whose backlog is full.
  if (is_answered || errno != ECONNREFUSED) {
    throw io_error("unix socket " + path, is_answered || errno == EAGAIN ? EADDRINUSE : errno);
  }
  unlink(path.c_str());
}

std::string text_of(const sockaddr_storage& address, socklen_t size) {
  if (address.ss_family == AF_UNIX) return "unix";
  std::array<char, NI_MAXHOST> host{};
  const int error = getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, host.data(),
                                host.size(), nullptr, 0, NI_NUMERICHOST);
  return error == 0 ? host.data() : "unknown";
}

/// Whether this user or root has connected a unix socket.
bool is_of_own_user(int descriptor) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  return peer.uid == geteuid() || peer.uid == 0;
}

/// One subscriber has at least 2^64 addresses of IPv6. Source: RFC 6177, section 2.
std::string client_of(const sockaddr_storage& address, const std::string& peer) {
  if (address.ss_family != AF_INET6) return peer;
  constexpr std::size_t kNetworkBytes = 8;
  const in6_addr& bytes = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&bytes)) return peer;
  return {reinterpret_cast<const char*>(bytes.s6_addr), kNetworkBytes};
}

}  // namespace

ListeningSocket listen_tcp(const std::string& host, std::uint16_t port) {
  const bool has_brackets = host.starts_with('[') && host.ends_with(']');
  const Addresses addresses = resolve(has_brackets ? host.substr(1, host.size() - 2) : host, port);
  int error = 0;
  for (const addrinfo* next = addresses.get(); next != nullptr; next = next->ai_next) {
    ListeningSocket listening{.descriptor = make_socket(next->ai_family), .port = 0};
    if (listening.descriptor.get() < 0) {
      error = errno;
      continue;
    }
    const int on = 1;
    setsockopt(listening.descriptor.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    error = bind_and_listen(listening.descriptor, next->ai_addr, next->ai_addrlen);
    if (error != 0) continue;
    listening.port = port_of(listening.descriptor);
    return listening;
  }
  throw io_error("address " + host + ":" + std::to_string(port), error);
}

SocketPath::SocketPath(std::string path) : path_(std::move(path)) {
  struct stat status {};
  if (lstat(path_.c_str(), &status) != 0) throw io_error("unix socket " + path_, errno);
  device_ = status.st_dev;
  inode_ = status.st_ino;
}

SocketPath::SocketPath(SocketPath&& other) noexcept
    : path_(std::exchange(other.path_, {})), device_(other.device_), inode_(other.inode_) {}

SocketPath& SocketPath::operator=(SocketPath&& other) noexcept {
  if (this == &other) return *this;
  remove();
  path_ = std::exchange(other.path_, {});
  device_ = other.device_;
  inode_ = other.inode_;
  return *this;
}

void SocketPath::remove() noexcept {
  struct stat status {};
  if (path_.empty() || lstat(path_.c_str(), &status) != 0) return;
  if (status.st_dev == device_ && status.st_ino == inode_) unlink(path_.c_str());
  path_.clear();
}

ListeningSocket listen_unix(const std::string& path) {
  const sockaddr_un address = unix_address(path);
  remove_stale(path, address);
  ListeningSocket listening{.descriptor = make_unix_socket(path), .port = 0};
  // Before bind(), so that there is no moment at which others may connect.
  fchmod(listening.descriptor.get(), kSocketMode);
  const int error = bind_and_listen(listening.descriptor, address_of(address), sizeof(address));
  if (error != 0) throw io_error("unix socket " + path, error);
  chmod(path.c_str(), kSocketMode);  // whatever the umask
  return listening;
}

Accepted accept_from(int listening, int& error) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  Accepted accepted;
  accepted.descriptor.reset(accept4(listening, reinterpret_cast<sockaddr*>(&address), &size,
                                    SOCK_NONBLOCK | SOCK_CLOEXEC));
  error = accepted.descriptor.get() >= 0 ? 0 : errno;
  if (error != 0) return accepted;
  accepted.family = address.ss_family;
  accepted.peer = text_of(address, size);
  accepted.client = client_of(address, accepted.peer);
  if (accepted.family == AF_UNIX) {
    accepted.is_own_user = is_of_own_user(accepted.descriptor.get());
  } else {
    const int on = 1;
    setsockopt(accepted.descriptor.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  return accepted;
}

}  // namespace fovea::serve
