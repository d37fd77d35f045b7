#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/file_descriptor.h"
#include "serve/http/operation.h"
#include "serve/http/stream.h"

namespace fovea::serve::test {

/// A stream without TLS on a thread that the test lends, and the socket of its client.
class StreamPair {
 public:
  StreamPair() {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
    client.reset(ends[1]);
    Socket socket(context);
    socket.assign({AF_UNIX, 0}, ends[0]);
    stream.emplace(std::move(socket), nullptr);
  }

  /// Begins a coroutine; what it throws is dropped.
  void begin(Awaitable<void> coroutine) {
    spawn(context.get_executor(), std::move(coroutine), [](const std::exception_ptr&) {});
  }
  /// Runs a coroutine to its end, and whatever else there is to do meanwhile. @throws what it does.
  void run(Awaitable<void> coroutine) {
    bool is_over = false;
    std::exception_ptr thrown;
    spawn(context.get_executor(), std::move(coroutine), [&](const std::exception_ptr& error) {
      is_over = true;
      thrown = error;
    });
    while (!is_over) run_one();
    if (thrown) std::rethrow_exception(thrown);
  }
  template <typename Result>
  Result run(Awaitable<Result> coroutine) {
    std::optional<Result> result;
    run(keep(std::move(coroutine), result));
    return std::move(*result);
  }
  /// Does one thing that is to be done, or waits for it.
  void run_one() {
    context.restart();
    context.run_one();
  }
  /// Does all that can be done without waiting.
  void poll() {
    context.restart();
    context.poll();
  }

  /// Sends bytes as the client.
  void send(std::string_view bytes) const {
    EXPECT_EQ(::send(client.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  /// The client sends no more.
  void shut_sending() const { EXPECT_EQ(shutdown(client.get(), SHUT_WR), 0); }
  /// What is there for the client now.
  [[nodiscard]] std::string receive() const {
    std::string all;
    std::array<char, 4096> piece{};
    for (;;) {
      const ssize_t got = recv(client.get(), piece.data(), piece.size(), 0);
      if (got <= 0) return all;
      all.append(piece.data(), static_cast<std::size_t>(got));
    }
  }

  asio::io_context context{1};
  std::optional<Stream> stream;
  FileDescriptor client;

 private:
  template <typename Result>
  static Awaitable<void> keep(Awaitable<Result> coroutine, std::optional<Result>& result) {
    result = co_await std::move(coroutine);
  }
};

}  // namespace fovea::serve::test
