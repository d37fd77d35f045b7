#pragma once

#include <pthread.h>

#include <csignal>

namespace fovea {

/// While it lives, its thread takes no signals, nor does a thread that it starts: handlers of the
/// program run on the program's own threads, and who waits for a signal gets it. Every thread of
/// ours is started under one, or has one for as long as it runs. It takes those alone that tell of
/// what it does itself, its faults and samples of its work: reporters of crashes and profilers want
/// to see our threads, too.
class BlockedSignals {
 public:
  BlockedSignals() noexcept {
    sigset_t others;
    sigfillset(&others);
    for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPROF}) {
      sigdelset(&others, own);
    }
    pthread_sigmask(SIG_SETMASK, &others, &previous_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &previous_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t previous_{};
};

}  // namespace fovea
