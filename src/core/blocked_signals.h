#pragma once

#include <pthread.h>

#include <csignal>

namespace fovea {

/// While it lives, its thread takes no signals, nor does a thread that it starts: handlers of the
/// program run on the program's own threads, and who waits for a signal gets it. A thread of ours
/// has one for as long as it runs.
class BlockedSignals {
 public:
  BlockedSignals() noexcept {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &previous_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &previous_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t previous_{};
};

}  // namespace fovea
