#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "serve/http/message.h"

namespace fovea::test {

/// A reply, as it came over the wire.
struct RawReply {
  int status = 0;
  serve::Headers headers;
  std::string body;

  [[nodiscard]] std::string header(std::string_view name) const {
    const std::string* value = serve::find_header(headers, name);
    return value == nullptr ? "" : *value;
  }
};

/// A client that sends any bytes, and waits for those of the server, a minute at most.
class RawClient {
 public:
  /// @param from 1: as the client 127.0.0.1; 2: as 127.0.0.2, which to the server is another one.
  static RawClient tcp(std::uint16_t port, std::uint8_t from = 1) {
    const sockaddr_in address = loopback(1, port);
    const sockaddr_in own = loopback(from, 0);
    return RawClient(AF_INET, reinterpret_cast<const sockaddr*>(&address), sizeof(address), &own);
  }
  static RawClient unix_socket(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    return RawClient(AF_UNIX, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  }
  ~RawClient() { close(); }
  RawClient(RawClient&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)), received_(std::move(other.received_)) {}
  RawClient& operator=(RawClient&&) = delete;

  /// Sends all of it, or what can be sent until the server closes.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  /// Bytes up to and with `end`.
  std::string receive_until(std::string_view end) {
    std::size_t at = 0;
    while ((at = received_.find(end)) == std::string::npos) {
      if (!receive_some()) throw std::runtime_error("closed after: " + received_);
    }
    return take(at + end.size());
  }
  std::string receive(std::size_t size) {
    while (received_.size() < size) {
      if (!receive_some()) throw std::runtime_error("closed within a body");
    }
    return take(size);
  }
  /// The next reply. @param has_body whether one comes if a length is named: not for HEAD.
  RawReply receive_reply(bool has_body = true) {
    RawReply reply;
    std::string head = receive_until("\r\n\r\n");
    if (!head.starts_with("HTTP/1.1 ")) throw std::runtime_error("no reply: " + head);
    reply.status = std::stoi(head.substr(9));
    for (std::size_t at = head.find("\r\n") + 2; head[at] != '\r';) {
      const std::size_t colon = head.find(": ", at);
      const std::size_t end = head.find("\r\n", at);
      reply.headers.push_back(
          {head.substr(at, colon - at), head.substr(colon + 2, end - colon - 2)});
      at = end + 2;
    }
    const std::string length = reply.header("Content-Length");
    if (has_body && !length.empty()) reply.body = receive(std::stoul(length));
    return reply;
  }
  RawReply ask(std::string_view request) {
    send(request);
    return receive_reply();
  }
  /// Whether the server closes, and sends nothing more before it does.
  bool is_closed() { return received_.empty() && !receive_some(); }
  /// Whether something comes, or the connection ends, within that time.
  [[nodiscard]] bool is_readable(int milliseconds) const {
    pollfd poll_for{.fd = descriptor_, .events = POLLIN, .revents = 0};
    return !received_.empty() || poll(&poll_for, 1, milliseconds) > 0;
  }

  void shut_sending() { shutdown(descriptor_, SHUT_WR); }
  void close() {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  }
  /// Closes, and has the system tell the server so by a reset.
  void reset() {
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    setsockopt(descriptor_, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    close();
  }
  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  static sockaddr_in loopback(std::uint8_t last, std::uint16_t port) {
    constexpr std::uint32_t kNetwork = 0x7f000000;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(kNetwork + last);
    return address;
  }

  RawClient(int family, const sockaddr* address, socklen_t size, const sockaddr_in* own = nullptr)
      : descriptor_(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (own != nullptr) bind(descriptor_, reinterpret_cast<const sockaddr*>(own), sizeof(*own));
    if (connect(descriptor_, address, size) != 0) {
      const int error = errno;
      close();
      throw std::runtime_error(std::string("connect: ") + std::strerror(error));
    }
    const timeval minute{.tv_sec = 60, .tv_usec = 0};
    setsockopt(descriptor_, SOL_SOCKET, SO_RCVTIMEO, &minute, sizeof(minute));
    setsockopt(descriptor_, SOL_SOCKET, SO_SNDTIMEO, &minute, sizeof(minute));
  }

  /// @return false at the end, or after a reset.
  bool receive_some() {
    std::array<char, 64 << 10> bytes;
    const ssize_t count = recv(descriptor_, bytes.data(), bytes.size(), 0);
    if (count < 0 && errno == EAGAIN) throw std::runtime_error("nothing came for a minute");
    if (count <= 0) return false;
    received_.append(bytes.data(), static_cast<std::size_t>(count));
    return true;
  }
  std::string take(std::size_t size) {
    std::string taken = received_.substr(0, size);
    received_.erase(0, size);
    return taken;
  }

  int descriptor_;
  std::string received_;
};

}  // namespace fovea::test
