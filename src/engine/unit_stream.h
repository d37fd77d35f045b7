#pragma once

#include <condition_variable>
#include <cstddef>
#include <future>
#include <mutex>
#include <optional>

#include "engine/prepare.h"

namespace fovea {

/// A long video, prepared a few units at a time on a thread of its own, under the interrupt of the
/// thread that makes this object. The thread is at most three takes ahead. Not thread-safe.
class UnitStream {
 public:
  /// @param ahead of the item, as PrepareUse. @param most_bytes of pixels at a time.
  /// What `context` refers to, `media` and the plan must outlive this object.
  UnitStream(const PrepareContext& context, const MediaItem& media, const ItemAhead& ahead,
             std::size_t most_bytes);
  UnitStream(const UnitStream&) = delete;
  UnitStream& operator=(const UnitStream&) = delete;
  /// Ends the thread.
  ~UnitStream();

  /// Waits for the next units; the last have the times and timestamps of the item. If it begins
  /// again with the first unit that is wanted, what came before does not count. An error is the
  /// last.
  /// @throws Error(kCancelled) or Error(kDeadline) if the interrupt ends it.
  [[nodiscard]] PreparedMedia next();

 private:
  /// Waits until the units before were taken.
  void put(PreparedMedia units);

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::optional<PreparedMedia> ready_;
  bool has_ended_ = false;    // the thread, by an interrupt
  bool is_closed_ = false;    // nobody wants any more
  std::future<void> thread_;  // last: it ends before what it uses
};

}  // namespace fovea
