#include "serve/media/fair_tasks.h"

#include <exception>
#include <utility>

namespace fovea::serve {

bool FairTasks::add(const std::string& client, Task task) {
  {
    const std::lock_guard lock(mutex_);
    Share& share = shares_[client];
    const std::int64_t own = std::ssize(share.waiting) + share.held;
    const std::int64_t most = client.empty() ? most_waiting_ : most_waiting_ / 2;
    if (own >= most || waiting_ + held_ >= most_waiting_) {
      if (own == 0) shares_.erase(client);
      return false;
    }
    share.waiting.push_back(std::move(task));
    ++waiting_;
  }
  start_those_next();
  return true;
}

void FairTasks::end() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  start_those_next();
}

void FairTasks::start_those_next() {
  for (;;) {
    std::string client;
    Task task;
    {
      const std::lock_guard lock(mutex_);
      const auto next = find_next();
      if (next == shares_.end()) return;
      client = last_ = next->first;
      task = std::move(next->second.waiting.front());
      next->second.waiting.pop_front();
      --waiting_;
      ++next->second.held;
      ++held_;
    }
    std::shared_ptr<void> place(static_cast<void*>(this), [client](void* tasks) {
      static_cast<FairTasks*>(tasks)->give_back(client);
    });
    start_(
        [task = std::move(task), place = std::move(place)]() mutable { task(std::move(place)); });
  }
}

FairTasks::Shares::iterator FairTasks::find_next() {
  const std::int64_t free = places_ - held_;
  const auto may_begin = [&](const Shares::value_type& entry) {
    const auto& [client, share] = entry;
    const bool has_place = client.empty() ? free > 0 : share.held < free;
    return !share.waiting.empty() && (ends_ || has_place);
  };
  const auto after_last = shares_.upper_bound(last_);
  for (auto next = after_last; next != shares_.end(); ++next) {
    if (may_begin(*next)) return next;
  }
  for (auto next = shares_.begin(); next != after_last; ++next) {
    if (may_begin(*next)) return next;
  }
  return shares_.end();
}

void FairTasks::give_back(const std::string& client) noexcept try {
  {
    const std::lock_guard lock(mutex_);
    const auto found = shares_.find(client);
    --found->second.held;
    --held_;
    if (found->second.held == 0 && found->second.waiting.empty()) shares_.erase(found);
  }
  start_those_next();
} catch (const std::exception&) {
  // No memory to begin a task: what waits begins with the next place that is given back.
}

}  // namespace fovea::serve
