#include "serve/media/fair_tasks.h"

#include <exception>
#include <utility>

namespace fovea::serve {

bool FairTasks::add(const std::string& client, Task task) {
  auto entry = std::make_shared<Entry>(*this, client, std::move(task));
  {
    const std::lock_guard lock(mutex_);
    Share& share = shares_[client];
    const std::int64_t own = std::ssize(share.waiting) + share.held;
    const std::int64_t most = client.empty() ? most_waiting_ : most_waiting_ / 2;
    if (own >= most || waiting_ + held_ >= most_waiting_) {
      if (own == 0) shares_.erase(client);
      return false;
    }
    share.waiting.push_back(std::move(entry));
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

void FairTasks::start_those_next() noexcept {
  const auto begin = [](std::shared_ptr<Entry> entry) {
    const Task task = std::move(entry->task);
    task(std::move(entry));
  };
  for (;;) {
    std::shared_ptr<Entry> entry;
    {
      const std::lock_guard lock(mutex_);
      const auto next = find_next();
      if (next == shares_.end()) return;
      entry = std::move(next->second.waiting.front());
      next->second.waiting.pop_front();
      --waiting_;
      ++next->second.held;
      ++held_;
      entry->holds_place = true;
      last_ = entry->client;
    }
    try {
      start_([begin, entry] { begin(entry); });
    } catch (const std::exception&) {
      begin(std::move(entry));
    }
  }
}

FairTasks::Shares::iterator FairTasks::find_next() {
  const std::int64_t free = places_ - held_;
  const auto may_begin = [&](const Shares::value_type& entry) {
    const auto& [client, share] = entry;
    const bool has_place = client.empty() ? free > 0 : share.held < free;
    return !share.waiting.empty() && (ends_ || has_place);
  };
  const auto after_last = last_ ? shares_.upper_bound(*last_) : shares_.begin();
  for (auto next = after_last; next != shares_.end(); ++next) {
    if (may_begin(*next)) return next;
  }
  for (auto next = shares_.begin(); next != after_last; ++next) {
    if (may_begin(*next)) return next;
  }
  return shares_.end();
}

void FairTasks::give_back(const std::string& client) noexcept {
  {
    const std::lock_guard lock(mutex_);
    const auto found = shares_.find(client);
    --found->second.held;
    --held_;
    if (found->second.held == 0 && found->second.waiting.empty()) shares_.erase(found);
  }
  start_those_next();
}

}  // namespace fovea::serve
