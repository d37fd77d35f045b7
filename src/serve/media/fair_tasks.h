#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace fovea::serve {

/// Lets tasks of clients begin, so many at a time. A client begins another one only while it holds
/// fewer places than are free, so that one whose tasks hang leaves places to the others: half of
/// them to the second client, a quarter to the third. Clients are served round robin, the tasks of
/// each begin in their order. Thread-safe.
class FairTasks {
 public:
  /// @param place held by the task until it has ended, with all that it has left behind.
  using Task = std::function<void(std::shared_ptr<void> place)>;

  /// @param places tasks at a time. @param most_waiting tasks that wait or hold a place; a client
  /// may have half of them. @param start begins a task, and returns; called by any thread.
  FairTasks(int places, std::int64_t most_waiting, std::function<void(std::function<void()>)> start)
      : places_(places), most_waiting_(most_waiting), start_(std::move(start)) {}

  /// @param client empty: there is none, and no share. @return false, without a trace, if too
  /// many wait already.
  [[nodiscard]] bool add(const std::string& client, Task task);
  /// Begins all that wait, whatever they hold: their stop tokens are set. Nothing is added then.
  void end();

 private:
  struct Share {
    std::deque<Task> waiting;
    std::int64_t held = 0;
  };
  using Shares = std::map<std::string, Share>;

  void start_those_next();
  /// The next client among those that may begin a task; end: none.
  [[nodiscard]] Shares::iterator find_next();
  void give_back(const std::string& client) noexcept;

  const std::int64_t places_;
  const std::int64_t most_waiting_;
  const std::function<void(std::function<void()>)> start_;
  std::mutex mutex_;  // guards what follows
  Shares shares_;     ///< of clients that have tasks
  std::string last_;  ///< the client that was served last
  std::int64_t waiting_ = 0;
  std::int64_t held_ = 0;
  bool ends_ = false;
};

}  // namespace fovea::serve
