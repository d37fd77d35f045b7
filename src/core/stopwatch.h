#pragma once

#include <chrono>

namespace fovea {

/// Wall time since a moment: that of construction, unless another one is given. Reading it changes
/// nothing, so several threads may read one stopwatch.
class Stopwatch {
 public:
  using Clock = std::chrono::steady_clock;

  Stopwatch() = default;
  /// @param start a moment after now counts as negative time until it comes.
  explicit Stopwatch(Clock::time_point start) : start_(start) {}

  [[nodiscard]] double elapsed_ms() const {
    return std::chrono::duration<double, std::milli>(Clock::now() - start_).count();
  }
  [[nodiscard]] double elapsed_seconds() const { return elapsed_ms() / 1e3; }

 private:
  Clock::time_point start_ = Clock::now();
};

}  // namespace fovea
