#pragma once

#include <functional>
#include <mutex>
#include <stop_token>
#include <vector>

#include "serve/service/workers.h"

namespace fovea::serve {

/// Tries whether something works, for many who ask: one try at a time, on a thread of its own, and
/// callers that ask while it runs share its result. Thread-safe.
class SelfCheck {
 public:
  /// @param attempt throws if it does not work; should end soon when stop is requested.
  /// @throws Error(kIo) if there are no threads to be had.
  explicit SelfCheck(std::function<void(const std::stop_token&)> attempt);
  /// Ends a try that runs, and answers those who wait for it that nothing works.
  ~SelfCheck();
  SelfCheck(const SelfCheck&) = delete;
  SelfCheck& operator=(const SelfCheck&) = delete;

  /// Calls `done` once, on that thread. It must not throw.
  void ask(std::function<void(bool works)> done);

 private:
  void run();

  std::function<void(const std::stop_token&)> attempt_;
  std::stop_source ends_;
  std::mutex mutex_;
  std::vector<std::function<void(bool)>> waiting_;  ///< not empty: a try runs, or is about to
  Workers worker_;                                  // last: its end runs what waits
};

}  // namespace fovea::serve
