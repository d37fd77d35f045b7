#include "serve/http/listener.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace fovea::serve {
namespace {

constexpr int kBatch = 256;  ///< connections per turn of the event loop
constexpr std::chrono::milliseconds kPause{100};

/// Whether accept() fails because the process or the system has run out of something.
bool is_shortage(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

}  // namespace

Listener::Listener(asio::io_context& context, FileDescriptor descriptor, Connections& connections,
                   Take take, LogSink* log)
    : descriptor_(context, descriptor.release()),
      connections_(connections),
      take_(std::move(take)),
      log_(log),
      changed_(context.get_executor()) {}

void Listener::start() { asio::co_spawn(descriptor_.get_executor(), run(), asio::detached); }

void Listener::close() {
  is_closed_ = true;
  boost::system::error_code ignored;
  descriptor_.close(ignored);
  changed_.notify();
}

void Listener::notify_room() {
  asio::post(descriptor_.get_executor(), [this] { changed_.notify(); });
}

Awaitable<void> Listener::run() {
  while (!is_closed_) {
    if (connections_.is_full()) {
      co_await changed_.wait();
      continue;
    }
    boost::system::error_code error;
    co_await descriptor_.async_wait(asio::posix::stream_descriptor::wait_read,
                                    asio::redirect_error(asio::use_awaitable, error));
    if (error || is_closed_) co_return;
    if (const int shortage = accept_batch()) {
      log_pause(shortage);
      co_await changed_.wait_until(Clock::now() + kPause);
    }
  }
}

int Listener::accept_batch() {
  for (int i = 0; i < kBatch && !connections_.is_full(); ++i) {
    int error = 0;
    Accepted accepted = accept_from(descriptor_.native_handle(), error);
    if (is_shortage(error)) return error;
    if (error == EAGAIN || error == EWOULDBLOCK) return 0;
    if (error != 0) continue;  // this one has gone already
    is_pausing_ = false;
    take_(std::move(accepted), connections_.take());
  }
  return 0;
}

void Listener::log_pause(int error) {
  if (std::exchange(is_pausing_, true)) return;
  log_to(log_, LogLevel::kWarning,
         std::string("http_accept_paused reason=\"") + strerrordesc_np(error) + "\"");
}

}  // namespace fovea::serve
