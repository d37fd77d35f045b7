#include "serve/http/io_thread.h"

#include <sys/socket.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <system_error>

#include "fovea/error.h"

namespace fovea::serve {

IoThread::IoThread(const HttpOptions& options, const Server::Parts& parts,
                   std::atomic<std::int64_t>& requests_in_progress)
    : group_{.options = options, .parts = parts, .requests_in_progress = requests_in_progress},
      context_(1),  // one thread: locks are cheaper
      guard_(context_.get_executor()) {}

void IoThread::start() {
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    throw Error(ErrorCode::kIo, std::string("a thread of the server: ") + error.what());
  }
}

void IoThread::run() noexcept {
  for (;;) {
    try {
      context_.run();
      return;
    } catch (const std::exception& error) {
      // Only memory can run out between requests; the other connections go on.
      log_error(error);
    }
  }
}

void IoThread::log_error(const std::exception& error) noexcept try {
  log_to(group_.options.log, LogLevel::kError, std::string("http_error reason=") + error.what());
} catch (const std::exception&) {
  // There is no memory for a line, either.
}

void IoThread::adopt(Accepted accepted, std::shared_ptr<TlsContext> tls,
                     std::shared_ptr<ConnectionPlace> place) {
  asio::post(context_, [this, accepted = std::move(accepted), tls = std::move(tls),
                        place = std::move(place)]() mutable {
    if (group_.is_draining) return;
    Socket socket(context_);
    boost::system::error_code error;
    socket.assign({accepted.family, 0}, accepted.descriptor.get(), error);
    if (error) return;
    (void)accepted.descriptor.release();
    std::make_shared<Session>(std::move(socket), std::move(tls), std::move(accepted),
                              std::move(place), group_)
        ->start();
  });
}

Session* IoThread::dispensable() {
  const auto is_of_a_crowd = [](const Session* session) {
    return session->place().is_of_a_crowd();
  };
  constexpr std::size_t kMostLooks = 64;
  const std::list<Session*>& idle = group_.in(SessionState::kIdle);
  const auto looks = static_cast<std::ptrdiff_t>(std::min(kMostLooks, idle.size()));
  const auto end = std::next(idle.begin(), looks);
  const auto first = std::find_if(idle.begin(), end, is_of_a_crowd);
  if (first != end) return *first;
  if (!idle.empty()) return idle.front();
  const std::list<Session*>& talking = group_.in(SessionState::kTalking);
  const auto found = std::ranges::find_if(talking, is_of_a_crowd);
  return found == talking.end() ? nullptr : *found;
}

void IoThread::make_room() {
  asio::post(context_, [this] {
    if (Session* session = dispensable()) session->give_way();
  });
}

void IoThread::drain() noexcept {
  post_surely(context_, [this] {
    group_.is_draining = true;
    for (Session* session : group_.in(SessionState::kIdle)) session->drain();
  });
}

void IoThread::abort() noexcept {
  post_surely(context_, [this] {
    for (const auto& sessions : group_.sessions) {
      for (Session* session : sessions) session->abort();
    }
  });
}

void IoThread::finish() noexcept {
  guard_.reset();
  if (thread_.joinable()) thread_.join();
}

}  // namespace fovea::serve
