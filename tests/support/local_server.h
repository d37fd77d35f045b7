#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace fovea::test {

inline void send_text(int socket, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = send(socket, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
}

/// Returns when the other side has closed.
inline void wait_for_close(int socket) {
  char byte = 0;
  while (recv(socket, &byte, 1, 0) > 0) continue;
}

/// A reply with a body and its length.
inline std::string http_reply(int status, const std::string& body,
                              const std::string& headers = "") {
  return "HTTP/1.1 " + std::to_string(status) + " Because\r\n" + headers +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

/// A server of one test on a loopback address, with a thread for each connection.
class LocalServer {
 public:
  /// Answers a request, whose head it gets; the connection is closed afterwards.
  using Answer = std::function<void(int socket, const std::string& head)>;

  /// @param port 0: one that is free.
  explicit LocalServer(Answer answer, const char* address = "127.0.0.1", std::uint16_t port = 0)
      : answer_(std::move(answer)), listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_port = htons(port);
    inet_pton(AF_INET, address, &name.sin_addr);
    socklen_t size = sizeof(name);
    auto* const generic = reinterpret_cast<sockaddr*>(&name);
    if (bind(listener_, generic, size) != 0 || listen(listener_, SOMAXCONN) != 0 ||
        getsockname(listener_, generic, &size) != 0) {
      throw std::runtime_error("no loopback address to listen on");
    }
    port_ = ntohs(name.sin_port);
    acceptor_ = std::jthread([this] { accept_all(); });
  }
  ~LocalServer() {
    shutdown(listener_, SHUT_RDWR);  // ends accept()
    acceptor_.join();
    connections_.clear();
    close(listener_);
  }
  LocalServer(const LocalServer&) = delete;
  LocalServer& operator=(const LocalServer&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] std::string url(const std::string& path = "/") const {
    return "http://127.0.0.1:" + std::to_string(port_) + path;
  }
  /// Connections that somebody made.
  [[nodiscard]] int accepted() const { return accepted_; }
  [[nodiscard]] std::vector<std::string> heads() {
    const std::lock_guard lock(mutex_);
    return heads_;
  }

 private:
  static constexpr const char* kTls = "\x16";  ///< what no request begins with

  void accept_all() {
    for (;;) {
      const int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (connection < 0) return;
      ++accepted_;
      connections_.emplace_back([this, connection] {
        std::string head;
        char byte = 0;
        const auto is_complete = [&] { return head.ends_with("\r\n\r\n") || head == kTls; };
        while (!is_complete() && recv(connection, &byte, 1, 0) == 1) head += byte;
        {
          const std::lock_guard lock(mutex_);
          heads_.push_back(head);
        }
        answer_(connection, head);
        close(connection);
      });
    }
  }

  Answer answer_;
  int listener_;
  std::uint16_t port_ = 0;
  std::atomic<int> accepted_ = 0;
  std::mutex mutex_;  // guards heads_
  std::vector<std::string> heads_;
  std::vector<std::jthread> connections_;  // of the acceptor
  std::jthread acceptor_;
};

}  // namespace fovea::test
