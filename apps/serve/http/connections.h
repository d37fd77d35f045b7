#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

namespace fovea::serve {

/// Counts open connections, up to a limit. Thread-safe.
class Connections {
 public:
  explicit Connections(std::int64_t limit) : limit_(limit) {}

  /// Called, on any thread, when there is room again. Set before the first connection.
  void on_room(std::function<void()> action) { on_room_ = std::move(action); }
  /// A place that is given back when it goes; it must not outlive this.
  [[nodiscard]] std::shared_ptr<void> take();
  [[nodiscard]] bool is_full() const;
  [[nodiscard]] std::int64_t open() const;
  [[nodiscard]] std::int64_t accepted() const;
  /// @return whether all of them ended in time.
  [[nodiscard]] bool wait_none(std::chrono::milliseconds patience);

 private:
  void release();

  const std::int64_t limit_;
  std::function<void()> on_room_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t open_ = 0;
  std::int64_t accepted_ = 0;
};

}  // namespace fovea::serve
