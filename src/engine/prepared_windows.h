#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <optional>
#include <vector>

#include "core/thread_pool.h"
#include "engine/item.h"
#include "engine/prepare.h"
#include "engine/unit_stream.h"

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
    /// As PrepareUse, of each item.
    std::function<bool(const Item& item, std::int64_t rows)> has_room = {};
  };
  /// Items that are prepared, run and handed over together, as CallWindow; or one whose units come
  /// a few at a time, in several windows one after the other.
  struct Window {
    Selection items;
    std::vector<std::size_t> replicas;
    bool is_stream = false;  ///< of units of a long video
    bool is_last = true;     ///< no more of its items will come
  };

  /// Items of a window without replicas that do not fit into it make up the next one, and each long
  /// video one of its own.
  /// @param source and the items must outlive this object, which waits for its thread at the end.
  PreparedWindows(const Source& source, std::vector<Window> windows);
  PreparedWindows(const PreparedWindows&) = delete;
  PreparedWindows& operator=(const PreparedWindows&) = delete;

  /// Whether next() has nothing left to return.
  [[nodiscard]] bool done() const noexcept { return windows_.empty(); }
  /// The next window, of prepared items; begins with the one after it. @throws as UnitStream::next.
  [[nodiscard]] Window next();
  /// Goes on behind the item whose units next() has given: there are no more, or none is wanted.
  void leave_stream();

 private:
  void prepare_first();
  [[nodiscard]] Window next_units();

  Source source_;
  std::deque<Window> windows_;        // those that next() has not returned
  std::optional<UnitStream> stream_;  // prepares the first of them, if that is one
  std::future<void> next_;            // else this does
};

}  // namespace fovea
