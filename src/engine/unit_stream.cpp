// Decoding runs ahead of the tower by three takes of units, which bounds the memory of a long
// video: one that is ready, one that waits for its place, and one that is complete behind it.
#include "engine/unit_stream.h"

#include <utility>

#include "core/blocked_signals.h"
#include "core/interrupt.h"

namespace fovea {

namespace {

/// Thrown into a preparation whose units nobody wants any more.
struct Closed {};

}  // namespace

UnitStream::UnitStream(const PrepareContext& context, const MediaItem& media,
                       const ItemAhead& ahead, std::size_t most_bytes) {
  const auto run = [this, context, &media, ahead, most_bytes, under = current_interrupt()] {
    const InterruptScope scope(under);
    const UnitSink sink{[this](PreparedMedia units) { put(std::move(units)); }, most_bytes};
    try {
      put(prepare_media(context, media, {.ahead = ahead, .sink = &sink}));
    } catch (const Closed&) {
    } catch (...) {
      const std::lock_guard lock(mutex_);
      has_ended_ = true;
      changed_.notify_all();
      throw;
    }
  };
  const BlockedSignals none;
  thread_ = std::async(std::launch::async, run);
}

UnitStream::~UnitStream() {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  changed_.notify_all();
}

void UnitStream::put(PreparedMedia units) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !ready_ || is_closed_; });
  if (is_closed_) throw Closed();
  ready_ = std::move(units);
  changed_.notify_all();
}

PreparedMedia UnitStream::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ready_ || has_ended_; });
  if (!ready_) {
    lock.unlock();
    thread_.get();  // throws
  }
  PreparedMedia units = *std::exchange(ready_, std::nullopt);
  changed_.notify_all();
  return units;
}

}  // namespace fovea
