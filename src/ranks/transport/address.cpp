// Local and TCP sockets by the texts that name them.
#include "ranks/transport/address.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <tuple>

#include "core/check.h"
#include "core/file.h"

namespace fovea::ranks {

namespace {

constexpr int kBacklog = 64;  // connections that wait to be accepted
constexpr std::chrono::milliseconds kRetryInterval{10};
constexpr std::chrono::milliseconds kTimeToListen{200};  // for a rank 0 between bind() and listen()

sockaddr_un local_name(const Address& address) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  FOVEA_CHECK(address.path.size() < sizeof(name.sun_path), kInvalidArgument, "rendezvous ",
              address.text, ": a path may have ", sizeof(name.sun_path) - 1, " bytes, got ",
              address.path.size());
  std::ranges::copy(address.path, name.sun_path);
  return name;
}

/// The result of getaddrinfo(); null if the host has no address.
auto look_up(const Address& address, bool to_listen) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV | (to_listen ? AI_PASSIVE : 0);
  addrinfo* found = nullptr;
  if (getaddrinfo(address.host.c_str(), address.port.c_str(), &wanted, &found) != 0)
    found = nullptr;
  return std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>(found, &freeaddrinfo);
}

bool is_loopback(const sockaddr& name) noexcept {
  constexpr std::uint32_t kNet = 127;
  if (name.sa_family == AF_INET) {
    return ntohl(reinterpret_cast<const sockaddr_in&>(name).sin_addr.s_addr) >> 24 == kNet;
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(name).sin6_addr;
  return name.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6);
}

void set_option(int socket, int level, int option) noexcept {
  const int on = 1;
  (void)setsockopt(socket, level, option, &on, sizeof on);
}

bool is_of_this_user(int socket) noexcept {
  ucred peer{};
  socklen_t size = sizeof peer;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

/// Connects a new socket. @return closed if none listens there; errno says why.
FileDescriptor try_connect(int family, const sockaddr* name, socklen_t size,
                           Clock::time_point deadline) noexcept {
  FileDescriptor result(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (::connect(result.get(), name, size) == 0) return result;
  if (errno != EINPROGRESS) return {};
  pollfd waiting{.fd = result.get(), .events = POLLOUT, .revents = 0};
  int failure = ETIMEDOUT;
  socklen_t failure_size = sizeof failure;
  if (poll(&waiting, 1, poll_timeout(deadline)) == 1)
    (void)getsockopt(result.get(), SOL_SOCKET, SO_ERROR, &failure, &failure_size);
  errno = failure;
  return failure == 0 ? std::move(result) : FileDescriptor();
}

FileDescriptor try_connect(const Address& address, Clock::time_point deadline) {
  if (address.is_file()) {
    const sockaddr_un name = local_name(address);
    return try_connect(AF_UNIX, reinterpret_cast<const sockaddr*>(&name), sizeof name, deadline);
  }
  const auto found = look_up(address, /*to_listen=*/false);
  for (const addrinfo* host = found.get(); host != nullptr; host = host->ai_next) {
    FileDescriptor socket = try_connect(host->ai_family, host->ai_addr, host->ai_addrlen, deadline);
    if (!socket.is_open()) continue;
    set_option(socket.get(), IPPROTO_TCP, TCP_NODELAY);
    set_option(socket.get(), SOL_SOCKET, SO_KEEPALIVE);
    return socket;
  }
  return {};
}

bool is_socket(const std::string& path) noexcept {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode);
}

/// Differs between a file and a later one of the same name: its inode, and when that last changed.
using FileTag = std::tuple<ino_t, time_t, long>;

/// The socket of a path at which nothing listens; absent: there is none.
std::optional<FileTag> stale_socket(const std::string& path) noexcept {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) return std::nullopt;
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const std::string_view text = path;  // copies take memory
  std::ranges::copy(text.substr(0, sizeof(name.sun_path) - 1), name.sun_path);
  const FileDescriptor socket =
      try_connect(AF_UNIX, reinterpret_cast<const sockaddr*>(&name), sizeof name, Clock::now());
  if (socket.is_open() || errno != ECONNREFUSED) return std::nullopt;
  return FileTag(status.st_ino, status.st_ctim.tv_sec, status.st_ctim.tv_nsec);
}

FileDescriptor listen_at(int family, const sockaddr* name, socklen_t size) noexcept {
  FileDescriptor result(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (family != AF_UNIX) set_option(result.get(), SOL_SOCKET, SO_REUSEADDR);
  const bool bound = bind(result.get(), name, size) == 0 && listen(result.get(), kBacklog) == 0;
  return bound ? std::move(result) : FileDescriptor();
}

FileDescriptor listen_locally(const Address& address) {
  const sockaddr_un name = local_name(address);
  remove_stale(address);
  FileDescriptor socket = listen_at(AF_UNIX, reinterpret_cast<const sockaddr*>(&name), sizeof name);
  FOVEA_CHECK(socket.is_open() || errno != EADDRINUSE, kInvalidArgument, "rendezvous ",
              address.text, ": expected a path for this group alone, ",
              is_socket(address.path) ? "another group meets there" : "there is another file");
  return socket;
}

}  // namespace

Address parse_address(const std::string& text) {
  constexpr std::string_view kFile = "file://";
  constexpr std::string_view kTcp = "tcp://";
  Address address{.text = text};
  if (text.starts_with(kFile)) address.path = text.substr(kFile.size());
  if (text.starts_with(kTcp)) {
    const std::size_t colon = text.rfind(':');
    address.host = text.substr(kTcp.size(), std::max(colon, kTcp.size()) - kTcp.size());
    address.port = text.substr(colon + 1);
    if (address.host.starts_with('[') && address.host.ends_with(']'))
      address.host = address.host.substr(1, address.host.size() - 2);
  }
  const bool is_port = !address.port.empty() && address.port.size() <= 5 &&
                       address.port.find_first_not_of("0123456789") == std::string::npos;
  FOVEA_CHECK(address.path.starts_with('/') || (!address.host.empty() && is_port), kInvalidArgument,
              "rendezvous: expected file:///PATH or tcp://HOST:PORT, got \"", text, "\"");
  return address;
}

bool is_local(const Address& address) {
  if (address.is_file()) return true;
  const auto found = look_up(address, /*to_listen=*/false);
  for (const addrinfo* host = found.get(); host != nullptr; host = host->ai_next) {
    if (!is_loopback(*host->ai_addr)) return false;
  }
  return found != nullptr;
}

Listener::Listener(const Address& address) {
  if (address.is_file()) {
    socket_ = listen_locally(address);
  } else {
    const auto found = look_up(address, /*to_listen=*/true);
    FOVEA_CHECK(found != nullptr, kInvalidArgument, "rendezvous ", address.text,
                ": the host has no address");
    socket_ = listen_at(found->ai_family, found->ai_addr, found->ai_addrlen);
  }
  FOVEA_CHECK(socket_.is_open(), kIo, "rendezvous ", address.text, ": ", system_reason());
  path_ = address.path;
}

Listener::~Listener() {
  if (!path_.empty()) (void)unlink(path_.c_str());
}

FileDescriptor Listener::accept() const noexcept {
  FileDescriptor result(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!path_.empty() && !is_of_this_user(result.get())) return {};
  if (path_.empty()) {
    set_option(result.get(), IPPROTO_TCP, TCP_NODELAY);
    set_option(result.get(), SOL_SOCKET, SO_KEEPALIVE);
  }
  return result;
}

FileDescriptor connect(const Address& address, Clock::time_point deadline) {
  for (;;) {
    FileDescriptor socket = try_connect(address, deadline);
    if (socket.is_open()) {
      FOVEA_CHECK(!address.is_file() || is_of_this_user(socket.get()), kIo, "rendezvous ",
                  address.text, ": a process of another user listens there");
      return socket;
    }
    if (Clock::now() + kRetryInterval > deadline) return {};
    std::this_thread::sleep_for(kRetryInterval);
  }
}

void remove_stale(const Address& address) noexcept {
  if (!address.is_file()) return;
  const std::optional<FileTag> found = stale_socket(address.path);
  if (!found) return;
  std::this_thread::sleep_for(kTimeToListen);
  if (stale_socket(address.path) == found) (void)unlink(address.path.c_str());
}

}  // namespace fovea::ranks
