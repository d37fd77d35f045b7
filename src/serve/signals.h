#pragma once

#include <chrono>
#include <csignal>
#include <optional>

namespace fovea::serve {

/// SIGTERM, SIGINT and SIGHUP as something to wait for: blocked in the thread that makes this, and
/// in all that it starts afterwards. SIGPIPE is ignored: writing to a client that left is an error
/// like others. After this SIGHUP is ignored, too: one that comes late ends no process.
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  /// The next signal; nothing if none comes in that time.
  [[nodiscard]] std::optional<int> wait(std::chrono::milliseconds timeout) const;

 private:
  sigset_t awaited_{};
  sigset_t previous_{};
};

}  // namespace fovea::serve
