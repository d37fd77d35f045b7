// One window ahead of the tower.
#include "engine/prepared_windows.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/blocked_signals.h"
#include "core/interrupt.h"

namespace fovea {

namespace {

using Window = PreparedWindows::Window;

/// Prepares items at once, spread over the pool, in this order.
/// @param most_bytes of their pixels together; 0: any. Later items are postponed, the first is not.
void prepare(const PreparedWindows::Source& source, const Selection& items,
             std::size_t most_bytes) {
  WindowBudget budget(most_bytes, items.size());
  source.pool.parallel_for(std::ssize(items), [&](std::int64_t i, int) {
    const auto place = static_cast<std::size_t>(i);
    WindowBudget::Place own(budget, place);
    Item& item = *items[place];
    PrepareUse use{.place = most_bytes == 0 ? nullptr : &own, .ahead = item.ahead()};
    if (source.has_room) {
      use.has_room = [&](std::int64_t rows) { return source.has_room(item, rows); };
    }
    item.prepared = prepare_media(source.context, *item.media, use);
  });
}

/// Takes the items for which `is` holds out of a window without replicas.
template <class Is>
Selection take(Window& window, Is is) {
  Selection taken;
  std::ranges::copy_if(window.items, std::back_inserter(taken), is);
  std::erase_if(window.items, is);
  return taken;
}

}  // namespace

PreparedWindows::PreparedWindows(const Source& source, std::vector<Window> windows)
    : source_(source),
      windows_(std::move_iterator(windows.begin()), std::move_iterator(windows.end())) {
  prepare_first();
}

void PreparedWindows::prepare_first() {
  if (done()) return;
  if (const Window& window = windows_.front(); window.is_stream) {
    constexpr std::size_t kTakes = 4;  // one runs, three are ahead
    const Item& item = *window.items.front();
    stream_.emplace(source_.context, *item.media, item.ahead(), source_.window_bytes / kTakes);
    return;
  }
  const std::launch policy = source_.on_host ? std::launch::deferred : std::launch::async;
  const BlockedSignals none;  // for a new thread; deferred, it runs under what its caller blocks
  next_ = std::async(policy, [this, &window = windows_.front(), under = current_interrupt()] {
    const InterruptScope scope(under);
    prepare(source_, window.items, window.replicas.empty() ? source_.window_bytes : 0);
  });
}

PreparedWindows::Window PreparedWindows::next() {
  if (stream_) return next_units();
  next_.get();
  Window window = std::move(windows_.front());
  windows_.pop_front();
  Selection later = take(window, [](const Item* item) { return item->prepared.postponed; });
  if (!later.empty()) windows_.push_front({.items = std::move(later), .replicas = {}});
  for (Item* item : take(window, [](const Item* some) { return some->prepared.is_long; })) {
    windows_.push_front({.items = {item}, .replicas = {}, .is_stream = true});
  }
  prepare_first();
  return window;
}

PreparedWindows::Window PreparedWindows::next_units() {
  Window window = windows_.front();
  Item& item = *window.items.front();
  item.prepared = stream_->next();
  window.is_last = item.prepared.is_last;
  if (window.is_last) leave_stream();
  return window;
}

void PreparedWindows::leave_stream() {
  stream_.reset();
  windows_.pop_front();
  prepare_first();
}

}  // namespace fovea
