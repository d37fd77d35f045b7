#pragma once

#include <cstddef>
#include <deque>
#include <future>
#include <span>
#include <vector>

#include "core/thread_pool.h"
#include "engine/call_plan.h"
#include "engine/prepare.h"
#include "engine/prepare/item_view.h"

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
    std::size_t window_bytes;  ///< CallLimits::window_bytes
  };
  struct Window {
    CallWindow call;
    std::vector<PreparedMedia> prepared;  ///< of each of its items
  };

  /// Items of a window without replicas that do not fit into it make up the next one.
  /// @param source and `media` must outlive this object, which waits for its thread at the end.
  PreparedWindows(const Source& source, ItemView media, std::vector<CallWindow> windows);

  /// Whether next() has nothing left to return.
  [[nodiscard]] bool done() const noexcept { return windows_.empty(); }
  /// The next window; begins with the one after it.
  [[nodiscard]] Window next();

 private:
  void prepare_first();

  Source source_;
  ItemView media_;
  std::deque<CallWindow> windows_;  // those that next() has not returned
  std::future<std::vector<PreparedMedia>> next_;
};

}  // namespace fovea
