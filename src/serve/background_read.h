#pragma once

#include <chrono>
#include <csignal>
#include <exception>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "core/blocked_signals.h"
#include "fovea/error.h"
#include "serve/signals.h"

namespace fovea::serve {

/// Reads something on a thread of its own, for a thread that must not wait: a file of a network may
/// hang for ever. For one thread.
template <class Result>
class BackgroundRead {
 public:
  /// @param read holds copies of all it needs: the destructor leaves a read behind that hangs.
  explicit BackgroundRead(std::function<Result()> read) : read_(std::move(read)) {}

  /// Begins to read. While a read runs, another is noted that follows it and whose result counts.
  void start() {
    if (running_.valid()) {
      is_outdated_ = true;
      return;
    }
    std::packaged_task<Result()> task(read_);
    running_ = task.get_future();
    const BlockedSignals none;
    try {
      std::thread(std::move(task)).detach();
    } catch (const std::system_error& error) {
      std::promise<Result> failed;
      running_ = failed.get_future();
      failed.set_exception(std::make_exception_ptr(
          Error(ErrorCode::kIo, std::string("cannot start a thread: ") + error.what())));
    }
  }

  /// The result of the read, or nothing if a signal that asks for the end comes first; SIGHUP reads
  /// again. Only after start(). @throws as take().
  [[nodiscard]] std::optional<Result> wait(const Signals& signals) {
    constexpr std::chrono::milliseconds kPollInterval(5);
    for (;;) {
      if (std::optional<Result> result = take()) return result;
      const std::optional<int> signal = signals.wait(kPollInterval);
      if (signal && signal != SIGHUP) return std::nullopt;
      if (signal) start();
    }
  }

  /// The result of a read, once for every start(); nothing as long as it is not over.
  /// @throws what `read` has thrown, Error(kIo) if there was no thread for it.
  [[nodiscard]] std::optional<Result> take() {
    using std::chrono::seconds;
    if (!running_.valid() || running_.wait_for(seconds(0)) != std::future_status::ready) return {};
    std::future<Result> done = std::move(running_);
    if (!std::exchange(is_outdated_, false)) return done.get();
    start();
    return std::nullopt;
  }

 private:
  std::function<Result()> read_;
  std::future<Result> running_;
  bool is_outdated_ = false;
};

}  // namespace fovea::serve
