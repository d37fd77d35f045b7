#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace fovea::serve {

/// Threads that run tasks, in the order they came. Tasks do not wait for each other.
class Workers {
 public:
  /// @throws Error(kIo) if a thread cannot be started.
  explicit Workers(int count);
  /// Runs what is left, then ends.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Runs a task soon; tasks must not throw. Never waits. Not after the destructor has begun, but
  /// from tasks that run.
  void run(std::function<void()> task);
  /// Waits until there is nothing to run. Not from a task.
  void wait_idle();

 private:
  void end();
  void work();

  std::mutex mutex_;  // guards what follows, up to the conditions
  std::deque<std::function<void()>> tasks_;
  int running_ = 0;
  bool ends_ = false;
  std::condition_variable wakes_;
  std::condition_variable is_idle_;
  std::vector<std::jthread> threads_;
};

}  // namespace fovea::serve
