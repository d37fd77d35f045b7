#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "batcher/scheduler.h"
#include "core/interrupt.h"

namespace fovea::test {

/// An item that the fake engine knows by its name. @param rows that it gets.
inline PlannedItem named_item(const std::string& name, std::int64_t rows = 0) {
  return PlannedItem(image_rgb({1}, rows, 1, name));
}

/// Stands in for Engine::encode: gives every item a row of its width_px, holds calls until they are
/// let through, and fails as items ask by their names: "bad" fails by itself, "fatal" fails the
/// call.
class FakeEngine {
 public:
  struct Seen {
    std::vector<std::string> names;
    EncodeOptions how;
  };

  [[nodiscard]] batching::Scheduler::Encode encode() {
    return [this](std::span<const PlannedItem> items, const EncodeOptions& how) {
      return run(items, how);
    };
  }

  /// From now on calls wait for let_through().
  void hold() {
    const std::lock_guard lock(mutex_);
    held_ = true;
  }
  void let_through() {
    {
      const std::lock_guard lock(mutex_);
      held_ = false;
    }
    changed_.notify_all();
  }
  /// Waits until so many calls have begun.
  void wait_for_calls(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return calls_.size() >= count; });
  }
  [[nodiscard]] std::vector<Seen> calls() {
    const std::lock_guard lock(mutex_);
    return calls_;
  }

 private:
  std::vector<Embedding> run(std::span<const PlannedItem> items, const EncodeOptions& how) {
    const Interrupt interrupt(how.bounds.stop, how.bounds.deadline, "encode");
    const InterruptScope scope(&interrupt);
    begin(items, how);
    std::vector<Embedding> rows(items.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
      rows[i].name = items[i].media().name;
      rows[i].rows = std::get<RgbFrames>(items[i].media().source).width_px;
      if (items[i].media().name == "fatal")
        throw Error(ErrorCode::kOutOfMemory, "fatal: no memory");
      if (items[i].media().name != "bad") continue;
      rows[i].error = Error(ErrorCode::kCorruptData, "bad: broken");
      if (how.on_error == OnError::kFail) throw Error(*rows[i].error);
    }
    return rows;
  }

  void begin(std::span<const PlannedItem> items, const EncodeOptions& how) {
    std::unique_lock lock(mutex_);
    Seen& seen = calls_.emplace_back();
    for (const PlannedItem& item : items) seen.names.push_back(item.media().name);
    seen.how = how;
    changed_.notify_all();
    wait_under_interrupt(changed_, lock, [&] { return !held_; });
    check_interrupt();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = false;
  std::vector<Seen> calls_;
};

/// Collects replies, by the name of the request.
class Replies {
 public:
  [[nodiscard]] Batcher::Done keep(const std::string& name) {
    return [this, name](BatchReply reply) {
      const std::lock_guard lock(mutex_);
      order_.push_back(name);
      replies_.emplace(name, std::move(reply));
      arrived_.notify_all();
    };
  }
  /// Waits for the reply.
  [[nodiscard]] const BatchReply& of(const std::string& name) {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return replies_.contains(name); });
    return replies_.find(name)->second;
  }
  /// Names of the requests that are complete, in their order.
  [[nodiscard]] std::vector<std::string> order() {
    const std::lock_guard lock(mutex_);
    return order_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<std::string> order_;
  std::multimap<std::string, BatchReply> replies_;
};

}  // namespace fovea::test
