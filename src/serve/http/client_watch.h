#pragma once

#include <cstddef>
#include <memory>

#include "serve/http/stream.h"

namespace fovea::serve {

/// Reads ahead from a client while its request is worked on: only a read shows that the client has
/// left. For one thread of an io_context; no other read of the stream may be in progress between
/// start() and stop(). A write may; when its deadline passes the watch ends, and takes the client
/// for gone. A write that has succeeded is resumed before the timer, so it lifts its deadline
/// first.
class ClientWatch {
 public:
  /// @param changed notified when the client has sent more, and when the watch ends.
  /// @param most_bytes that are read ahead; the watch ends when they are there. `stream` must
  /// outlive this.
  ClientWatch(Stream& stream, std::shared_ptr<Event> changed, std::size_t most_bytes);

  /// Begins to read, and returns. @param owner of the stream, held while the watch runs.
  /// @throws std::bad_alloc, and then nothing runs.
  void start(std::shared_ptr<void> owner);
  /// Ends the watch, if it runs, and waits until its read has ended.
  [[nodiscard]] Awaitable<void> stop();
  /// Whether the client has left during a watch.
  [[nodiscard]] bool client_left() const noexcept { return state_ == State::kLeft; }

 private:
  enum class State { kOff, kRuns, kStops, kLeft };

  [[nodiscard]] Awaitable<void> run();

  Stream& stream_;
  std::shared_ptr<Event> changed_;
  std::size_t most_bytes_;
  State state_ = State::kOff;
};

}  // namespace fovea::serve
