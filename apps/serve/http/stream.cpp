#include "serve/http/stream.h"

#include <array>

namespace fovea::serve {
namespace {

auto into(boost::system::error_code& error) {
  return asio::redirect_error(asio::use_awaitable, error);
}

}  // namespace

Stream::Stream(Socket socket, std::shared_ptr<TlsContext> tls)
    : socket_(std::move(socket)),
      tls_context_(std::move(tls)),
      deadline_(socket_.get_executor(), [this] { cancel(); }) {
  if (tls_context_) tls_.emplace(socket_, *tls_context_);
}

std::optional<IoResult> Stream::refusal() const {
  if (!deadline_.has_expired()) return std::nullopt;
  return finished(asio::error::operation_aborted, 0);
}

IoResult Stream::finished(boost::system::error_code error, std::size_t bytes) const {
  return {.error = error, .bytes = bytes, .has_expired = error && deadline_.has_expired()};
}

Awaitable<bool> Stream::handshake() {
  if (!tls_) co_return true;
  boost::system::error_code error;
  co_await tls_->async_handshake(asio::ssl::stream_base::server, into(error));
  co_return !error;
}

Awaitable<IoResult> Stream::read_some(asio::mutable_buffer buffer) {
  if (const auto refused = refusal()) co_return *refused;
  boost::system::error_code error;
  std::size_t bytes = 0;
  if (tls_) {
    bytes = co_await tls_->async_read_some(buffer, into(error));
  } else {
    bytes = co_await socket_.async_read_some(buffer, into(error));
  }
  co_return finished(error, bytes);
}

Awaitable<IoResult> Stream::write_some(std::span<const asio::const_buffer> buffers) {
  if (const auto refused = refusal()) co_return *refused;
  boost::system::error_code error;
  std::size_t bytes = 0;
  if (tls_) {
    bytes = co_await tls_->async_write_some(buffers, into(error));
  } else {
    bytes = co_await socket_.async_write_some(buffers, into(error));
  }
  co_return finished(error, bytes);
}

Awaitable<void> Stream::say_goodbye() {
  boost::system::error_code ignored;
  if (tls_) co_await tls_->async_shutdown(into(ignored));
  socket_.shutdown(Socket::shutdown_send, ignored);
}

Awaitable<void> Stream::linger() {
  boost::system::error_code error;
  std::array<char, 16 << 10> dropped;
  while (!error && !deadline_.has_expired()) {
    co_await socket_.async_read_some(asio::buffer(dropped), into(error));
  }
}

void Stream::cancel() {
  boost::system::error_code ignored;
  socket_.cancel(ignored);
}

void Stream::close() {
  boost::system::error_code ignored;
  socket_.close(ignored);
}

}  // namespace fovea::serve
