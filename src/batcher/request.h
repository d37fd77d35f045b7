#pragma once

#include <chrono>
#include <cstdint>
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

}  // namespace fovea::batching
