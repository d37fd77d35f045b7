#pragma once

#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "serve/http/asio.h"
#include "serve/http/deadline.h"
#include "serve/http/tls.h"

namespace fovea::serve {

/// Bytes that have come and are not used up. Small while a connection is idle.
class Input {
 public:
  [[nodiscard]] std::string_view view() const noexcept {
    return {bytes_.data() + begin_, end_ - begin_};
  }
  void consume(std::size_t size) noexcept { begin_ += size; }

  /// Room for `size` bytes behind those that are there. Moves them.
  [[nodiscard]] std::span<char> prepare(std::size_t size) {
    const std::size_t held = end_ - begin_;
    if (begin_ > 0) std::memmove(bytes_.data(), bytes_.data() + begin_, held);
    begin_ = 0;
    end_ = held;
    if (bytes_.size() < held + size) bytes_.resize(held + size);
    return {bytes_.data() + held, size};
  }
  /// The first bytes of that room are filled.
  void commit(std::size_t size) noexcept { end_ += size; }

  /// Gives memory back that a large request has needed.
  void shrink() {
    if (view().empty() && bytes_.size() > kSmall) *this = Input();
  }

 private:
  static constexpr std::size_t kSmall = std::size_t{8} << 10;

  std::vector<char> bytes_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

/// The result of a read or a write.
struct IoResult {
  boost::system::error_code error;
  std::size_t bytes = 0;
  bool has_expired = false;  ///< the deadline passed first
};

/// The bytes of a connection, encrypted or not, those that were read ahead, and one deadline for
/// all that is in progress. For one thread of an io_context; one read and one write may be in
/// progress at a time.
class Stream {
 public:
  /// @param tls null: not encrypted.
  Stream(Socket socket, std::shared_ptr<TlsContext> tls);

  [[nodiscard]] asio::any_io_executor executor() { return socket_.get_executor(); }

  /// Reads and writes from now on fail at that time, those in progress, too.
  void set_deadline(Clock::time_point time) { deadline_.set(time); }

  /// @return whether the client may go on.
  [[nodiscard]] Awaitable<bool> handshake();
  /// Bytes that were read and are not used up.
  [[nodiscard]] Input& input() noexcept { return input_; }
  /// Reads some bytes into the input, so that it then holds `most_bytes` at most, or one more than
  /// before; at least one unless it fails; zero at the end.
  [[nodiscard]] Awaitable<IoResult> fill(std::size_t most_bytes);
  /// Reads some bytes past the input, at least one unless it fails; zero at the end.
  [[nodiscard]] Awaitable<IoResult> read_some(asio::mutable_buffer buffer);
  [[nodiscard]] Awaitable<IoResult> write_some(std::span<const asio::const_buffer> buffers);
  /// Tells the client that no more comes.
  /// @param is_whole whether it has got all that it was to get. TLS says no goodbye otherwise: a
  /// reply may have no other end. Source: RFC 9112, 9.8.
  [[nodiscard]] Awaitable<void> shut_down(bool is_whole);
  /// Drops what the client sends until it closes or the deadline passes: closing with unread bytes
  /// would take the reply from it. Source: RFC 9112, 9.6.
  [[nodiscard]] Awaitable<void> linger();

  /// Ends reads and writes that are in progress.
  void cancel();
  void close();

 private:
  /// An error if nothing may start any more.
  [[nodiscard]] std::optional<IoResult> refusal() const;
  [[nodiscard]] IoResult finished(boost::system::error_code error, std::size_t bytes) const;

  Socket socket_;
  std::shared_ptr<TlsContext> tls_context_;
  std::optional<asio::ssl::stream<Socket&>> tls_;
  Deadline deadline_;
  Input input_;
};

}  // namespace fovea::serve
