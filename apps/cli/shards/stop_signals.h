#pragma once

#include <atomic>
#include <csignal>
#include <stop_token>
#include <thread>

namespace fovea::cli {

/// SIGINT and SIGTERM as a request to stop, while this object lives. The second one ends the
/// process at once. The signals are blocked in the thread that makes this and in all that it starts
/// afterwards, so it comes before others are started.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Stopped by the first signal, or by stop().
  [[nodiscard]] std::stop_token token() const noexcept { return source_.get_token(); }
  void stop() noexcept { source_.request_stop(); }

 private:
  void wait();

  sigset_t awaited_{};
  sigset_t previous_{};
  std::stop_source source_;
  std::atomic<bool> ended_ = false;
  std::thread thread_;
};

}  // namespace fovea::cli
