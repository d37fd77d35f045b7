#pragma once

#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <memory>
#include <optional>
#include <span>

#include "serve/http/asio.h"
#include "serve/http/deadline.h"
#include "serve/http/tls.h"

namespace fovea::serve {

/// What a read or write came to.
struct IoResult {
  boost::system::error_code error;
  std::size_t bytes = 0;
  bool has_expired = false;  ///< the deadline passed first
};

/// The bytes of a connection, encrypted or not, with one deadline for what is in progress. For one
/// thread of an io_context; one read and one write may be in progress at a time.
class Stream {
 public:
  /// @param tls null: not encrypted.
  Stream(Socket socket, std::shared_ptr<TlsContext> tls);

  [[nodiscard]] asio::any_io_executor executor() { return socket_.get_executor(); }

  /// Reads and writes from now on fail at that time, those in progress, too.
  void set_deadline(Clock::time_point time) { deadline_.set(time); }

  /// @return whether the client may go on.
  [[nodiscard]] Awaitable<bool> handshake();
  /// Some bytes, at least one unless it fails; zero at the end.
  [[nodiscard]] Awaitable<IoResult> read_some(asio::mutable_buffer buffer);
  [[nodiscard]] Awaitable<IoResult> write_some(std::span<const asio::const_buffer> buffers);
  /// Tells the client that no more comes.
  [[nodiscard]] Awaitable<void> say_goodbye();
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
};

}  // namespace fovea::serve
