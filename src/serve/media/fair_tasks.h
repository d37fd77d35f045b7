#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

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
  /// may have half of them. @param start begins a task, and returns; called by any thread. Where it
  /// throws, for want of memory, the task runs on that thread.
  FairTasks(int places, std::int64_t most_waiting, std::function<void(std::function<void()>)> start)
      : places_(places), most_waiting_(most_waiting), start_(std::move(start)) {}

  /// @param client empty: there is none, and no share. @return false, without a trace, if too
  /// many wait already. @throws std::bad_alloc, and then the task never begins.
  [[nodiscard]] bool add(const std::string& client, Task task);
  /// Begins all that wait, whatever they hold: their stop tokens are set. Nothing is added then.
  void end();

 private:
  /// A task, and then its place, for which no memory is needed any more when it begins.
  struct Entry {
    Entry(FairTasks& of, const std::string& whose, Task what)
        : tasks(of), client(std::make_shared<const std::string>(whose)), task(std::move(what)) {}
    ~Entry() {
      if (holds_place) tasks.give_back(*client);
    }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

    FairTasks& tasks;
    const std::shared_ptr<const std::string> client;
    Task task;
    bool holds_place = false;
  };
  struct Share {
    std::deque<std::shared_ptr<Entry>> waiting;
    std::int64_t held = 0;
  };
  using Shares = std::map<std::string, Share>;

  void start_those_next() noexcept;
  /// The next client among those that may begin a task; end: none.
  [[nodiscard]] Shares::iterator find_next();
  void give_back(const std::string& client) noexcept;

  const std::int64_t places_;
  const std::int64_t most_waiting_;
  const std::function<void(std::function<void()>)> start_;
  std::mutex mutex_;                         // guards what follows
  Shares shares_;                            ///< of clients that have tasks
  std::shared_ptr<const std::string> last_;  ///< the client that was served last; null: none
  std::int64_t waiting_ = 0;
  std::int64_t held_ = 0;
  bool ends_ = false;
};

}  // namespace fovea::serve
