#include "serve/signals.h"

#include <ctime>

namespace fovea::serve {

Signals::Signals() {
  sigemptyset(&awaited_);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&awaited_, signal);
  pthread_sigmask(SIG_BLOCK, &awaited_, &previous_);
  std::signal(SIGPIPE, SIG_IGN);
}

Signals::~Signals() {
  std::signal(SIGHUP, SIG_IGN);  // also drops one that waits: there is nothing left to reload
  pthread_sigmask(SIG_SETMASK, &previous_, nullptr);
}

std::optional<int> Signals::wait(std::chrono::milliseconds timeout) const {
  constexpr int kMsPerSecond = 1000;
  constexpr long kNsPerMs = 1'000'000;
  const timespec time{.tv_sec = timeout.count() / kMsPerSecond,
                      .tv_nsec = timeout.count() % kMsPerSecond * kNsPerMs};
  const int signal = sigtimedwait(&awaited_, nullptr, &time);
  return signal < 0 ? std::nullopt : std::optional(signal);
}

}  // namespace fovea::serve
