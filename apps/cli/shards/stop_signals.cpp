// Ctrl-C, and what schedulers send before they kill.
#include "shards/stop_signals.h"

#include <pthread.h>
#include <unistd.h>

namespace fovea::cli {
namespace {

constexpr int kSignalExit = 128;  // as shells report it

}  // namespace

StopSignals::StopSignals() {
  sigemptyset(&awaited_);
  for (const int signal : {SIGINT, SIGTERM}) sigaddset(&awaited_, signal);
  pthread_sigmask(SIG_BLOCK, &awaited_, &previous_);
  thread_ = std::thread([this] { wait(); });
}

StopSignals::~StopSignals() {
  ended_ = true;
  // NOLINTNEXTLINE(bugprone-bad-signal-to-kill-thread): blocked, it only wakes sigwait
  pthread_kill(thread_.native_handle(), SIGTERM);
  thread_.join();
  pthread_sigmask(SIG_SETMASK, &previous_, nullptr);
}

void StopSignals::wait() {
  for (bool again = false;; again = true) {
    int signal = 0;
    if (sigwait(&awaited_, &signal) != 0 || ended_) return;
    if (again) _exit(kSignalExit + signal);
    source_.request_stop();
  }
}

}  // namespace fovea::cli
