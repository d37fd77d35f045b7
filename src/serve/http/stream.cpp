#include "serve/http/stream.h"

#include <algorithm>
#include <array>

#include "serve/http/operation.h"

namespace fovea::serve {

constexpr std::size_t kInputPiece = std::size_t{4} << 10;

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
  Operation shake;
  tls_->async_handshake(asio::ssl::stream_base::server, shake.done());
  co_await shake.wait();
  co_return !shake.error();
}

Awaitable<IoResult> Stream::fill(std::size_t most_bytes) {
  const std::size_t held = input_.view().size();
  const std::size_t limit = std::max(most_bytes, held + 1);
  const std::span<char> room = input_.prepare(std::min(kInputPiece, limit - held));
  const IoResult got = co_await read_some(asio::buffer(room.data(), room.size()));
  input_.commit(got.bytes);
  co_return got;
}

Awaitable<IoResult> Stream::read_some(asio::mutable_buffer buffer) {
  if (const auto refused = refusal()) co_return *refused;
  Operation read;
  if (tls_) {
    tls_->async_read_some(buffer, read.done());
  } else {
    socket_.async_read_some(buffer, read.done());
  }
  co_await read.wait();
  co_return finished(read.error(), read.bytes());
}

Awaitable<IoResult> Stream::write_some(std::span<const asio::const_buffer> buffers) {
  if (const auto refused = refusal()) co_return *refused;
  Operation write;
  if (tls_) {
    tls_->async_write_some(buffers, write.done());
  } else {
    socket_.async_write_some(buffers, write.done());
  }
  co_await write.wait();
  co_return finished(write.error(), write.bytes());
}

Awaitable<void> Stream::shut_down(bool is_whole) {
  if (tls_ && is_whole) {
    Operation shutdown;
    tls_->async_shutdown(shutdown.done());
    co_await shutdown.wait();
  }
  boost::system::error_code ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
}

Awaitable<void> Stream::linger() {
  boost::system::error_code error;
  std::array<char, 16 << 10> dropped;
  while (!error && !deadline_.has_expired()) {
    Operation read;
    socket_.async_read_some(asio::buffer(dropped), read.done());
    co_await read.wait();
    error = read.error();
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
