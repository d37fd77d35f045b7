#pragma once

#include <cstddef>
#include <future>
#include <span>
#include <vector>

#include "core/thread_pool.h"
#include "engine/call_plan.h"
#include "engine/prepare.h"

namespace fovea {

/// The items of a call, prepared window by window. On a GPU the next window is prepared on a thread
/// of its own while the tower runs on the last; a CPU has no idle cores for that. All of it works
/// under the interrupt of the thread that makes this object. Not thread-safe.
class PreparedWindows {
 public:
  struct Source {
    PrepareContext context;
    ThreadPool& pool;
    bool on_host;
  };
  struct Window {
    const CallWindow& call;
    std::vector<PreparedMedia> prepared;  ///< of each of its items
  };

  /// All of `source`, `media` and `windows` must outlive this object, which waits for its thread at
  /// the end.
  PreparedWindows(const Source& source, std::span<const MediaItem> media,
                  std::span<const CallWindow> windows);

  /// Whether next() has nothing left to return.
  [[nodiscard]] bool done() const noexcept { return windows_.empty(); }
  /// The next window; begins with the one after it.
  [[nodiscard]] Window next();

 private:
  void prepare_first();

  Source source_;
  std::span<const MediaItem> media_;
  std::span<const CallWindow> windows_;  // those that next() has not returned
  std::future<std::vector<PreparedMedia>> next_;
};

}  // namespace fovea
