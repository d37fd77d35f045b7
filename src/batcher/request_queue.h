#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "fovea/batcher.h"

namespace fovea::batching {

using Clock = std::chrono::steady_clock;

/// What a request takes of the bounds.
struct Load {
  std::int64_t items = 0;
  std::int64_t bytes = 0;
  std::int64_t rows = 0;
};

/// A call of the engine, which encodes one request or several.
struct Call {
  std::stop_source stop;
  std::uint64_t number = 0;
  std::int64_t wanted = 0;  ///< requests that are not complete
};

/// A request from submit() to its reply.
struct Request {
  enum class State : std::uint8_t { kQueued, kRunning, kComplete };

  std::uint64_t number = 0;
  std::vector<PlannedItem> items;
  EncodeOptions how;
  Batcher::Done done;
  Load load;
  Clock::time_point submitted;
  Clock::time_point begun;  ///< its batch, unless it is queued
  State state = State::kQueued;
  bool is_cancelled = false;   ///< and about to end
  std::shared_ptr<Call> call;  ///< that encodes this request; null: none has begun
  /// Cancels the request. Destroyed without a lock: it waits for a cancellation that is under way.
  std::optional<std::stop_callback<std::function<void()>>> on_stop;
};

using RequestPtr = std::shared_ptr<Request>;

/// Requests that wait, and which of them run together. Not thread-safe.
class RequestQueue {
 public:
  /// @param options with all bounds of a batch.
  explicit RequestQueue(const BatcherOptions& options) : options_(options) {}

  [[nodiscard]] bool empty() const noexcept { return waiting_.empty(); }
  /// When the request that has waited longest came. There must be one.
  [[nodiscard]] Clock::time_point oldest() const noexcept { return waiting_.front()->submitted; }
  /// Whether the next batch will not grow by waiting: all that waits does not fit into it.
  [[nodiscard]] bool has_full_batch() const noexcept;

  void push(RequestPtr request) { waiting_.push_back(std::move(request)); }
  void remove(const Request& request) noexcept;
  /// Takes the request that has waited longest, and those behind it that fit into a batch with it:
  /// within the bounds of a batch, and of the same options. So nobody is passed over by more than
  /// the batches in front of him.
  /// @param batch is replaced. Where it has room for most_requests() nothing is allocated.
  void take_batch(std::vector<RequestPtr>& batch);
  /// That a batch can have.
  [[nodiscard]] std::size_t most_requests() const noexcept {
    return static_cast<std::size_t>(
        std::min({options_.max_items, options_.max_batch_items, kMostRequests}));
  }

  /// Whether a request is too large to share a batch with any other.
  [[nodiscard]] static bool is_large(const Load& load, const BatcherOptions& options) noexcept {
    return load.items > options.max_batch_items || load.rows > options.max_batch_rows;
  }

 private:
  /// More than an engine gains by; each lane has room for them, whatever the bounds of a caller.
  static constexpr std::int64_t kMostRequests = std::int64_t{1} << 16;

  /// Calls take(request) for each one of the next batch. @return the load of all of them.
  template <class Take>
  [[nodiscard]] Load choose(Take&& take) const;

  BatcherOptions options_;
  std::deque<RequestPtr> waiting_;  // in order of arrival
};

}  // namespace fovea::batching
