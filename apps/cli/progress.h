#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>

#include "console.h"

namespace fovea::cli {

/// Where a long step is.
struct ProgressCount {
  std::int64_t done = 0;
  std::int64_t total = 0;  ///< 0: not known
};

/// "1200/100000, 35.2/s, 46 min left". @param per_second 0: not known yet, and left out.
[[nodiscard]] std::string progress_text(const ProgressCount& count, double per_second);

/// Shows on the console's status line what a long step is doing, and removes the line at its end:
/// "label 3/10", with the rate of the last half minute and the time that the rest takes at it, once
/// both can be told. Where stderr is no terminal, a plain line says so once a minute instead.
/// Thread-safe.
class Progress {
 public:
  using Clock = std::chrono::steady_clock;

  /// @param now the clock, which tests replace.
  Progress(Console& console, std::string label, std::int64_t total = 0,
           Clock::time_point (*now)() = Clock::now);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance();
  /// Shows `done` of `total`. Both may only be items that take time: what was there already tells
  /// nothing about the rest.
  void set(std::int64_t done, std::int64_t total);
  void set_done(std::int64_t done);
  void set_total(std::int64_t total);

 private:
  /// What was done at a moment.
  struct Mark {
    Clock::time_point time;
    std::int64_t done;
  };
  void show();
  [[nodiscard]] double per_second(Clock::time_point now);

  Console& console_;  // outlives this object
  const std::string label_;
  Clock::time_point (*const now_)();
  std::mutex mutex_;  // guards what follows
  ProgressCount count_;
  std::deque<Mark> marks_;  // of the last half minute, the oldest first
  Clock::time_point shown_;
  Clock::time_point printed_;
};

}  // namespace fovea::cli
