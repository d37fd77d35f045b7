#include "serve/http/listener.h"

#include <cerrno>
#include <cstring>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include "serve/http/operation.h"

namespace fovea::serve {
namespace {

constexpr std::chrono::milliseconds kPause{100};     ///< when something has run out
constexpr std::chrono::milliseconds kRoomPause{20};  ///< for a connection to give way
constexpr std::chrono::milliseconds kShortPause{1};

/// Whether accept() fails because the process or the system has run out of something.
bool is_shortage(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

}  // namespace

Listener::Listener(asio::io_context& context, FileDescriptor descriptor, Connections& connections,
                   Take take, std::function<void()> make_room, LogSink* log)
    : descriptor_(context, descriptor.release()),
      connections_(connections),
      take_(std::move(take)),
      make_room_(std::move(make_room)),
      log_(log),
      changed_(context.get_executor()) {}

void Listener::start() {
  spawn(descriptor_.get_executor(), run(), [](const std::exception_ptr&) {});
}

void Listener::close() {
  is_closed_ = true;
  boost::system::error_code ignored;
  descriptor_.close(ignored);
  changed_.notify();
}

void Listener::notify_room() noexcept try {
  asio::post(descriptor_.get_executor(), [this] { changed_.notify(); });
} catch (const std::bad_alloc&) {
  // The listener looks again soon.
}

Awaitable<void> Listener::run() {
  bool is_short = false;  // of memory
  while (!is_closed_) {
    try {
      if (std::exchange(is_short, false)) co_await changed_.wait_until(Clock::now() + kPause);
      if (!reserve_) reserve_ = std::make_unique<Reserve>();
      if (!co_await wait_for_one()) co_return;
      const std::chrono::milliseconds pause = attend();
      if (pause.count() > 0) co_await changed_.wait_until(Clock::now() + pause);
    } catch (const std::bad_alloc&) {
      // Nothing can be waited for without memory: the reserve has some.
      is_short = true;
      if (!std::exchange(reserve_, nullptr)) std::this_thread::sleep_for(kShortPause);
    }
  }
}

Awaitable<bool> Listener::wait_for_one() {
  Operation readable;
  descriptor_.async_wait(asio::posix::stream_descriptor::wait_read, readable.done());
  co_await readable.wait();
  co_return !readable.error() && !is_closed_;
}

std::chrono::milliseconds Listener::attend() noexcept try {
  if (connections_.is_full()) {
    make_room_();
    return kRoomPause;
  }
  const int shortage = accept_batch();
  if (shortage == 0) return {};
  log_pause(shortage);
  return kPause;
} catch (const std::exception&) {
  return kPause;  // without memory for the one that has come
}

int Listener::accept_batch() {
  for (int i = 0; i < kBatch && !connections_.is_full(); ++i) {
    int error = 0;
    Accepted accepted = accept_from(descriptor_.native_handle(), error);
    if (is_shortage(error)) return error;
    if (error == EAGAIN || error == EWOULDBLOCK) return 0;
    if (error != 0) continue;  // this one has gone already
    is_pausing_ = false;
    std::shared_ptr<ConnectionPlace> place = connections_.take(accepted.client);
    take_(std::move(accepted), std::move(place));
  }
  return 0;
}

void Listener::log_pause(int error) {
  if (std::exchange(is_pausing_, true)) return;
  log_to(log_, LogLevel::kWarning,
         std::string("http_accept_paused reason=\"") + strerrordesc_np(error) + "\"");
}

}  // namespace fovea::serve
