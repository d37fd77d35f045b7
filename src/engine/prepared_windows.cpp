// One window ahead of the tower.
#include "engine/prepared_windows.h"

#include <algorithm>
#include <iterator>
#include <utility>

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
    item.prepared = prepare_media(source.context, *item.media, most_bytes == 0 ? nullptr : &own,
                                  item.plan ? &*item.plan : nullptr);
  });
}

/// Takes the postponed items out of a window without replicas.
Window take_postponed(Window& window) {
  const auto is_postponed = [](const Item* item) { return item->prepared.postponed; };
  Window later;
  std::ranges::copy_if(window.items, std::back_inserter(later.items), is_postponed);
  std::erase_if(window.items, is_postponed);
  return later;
}

}  // namespace

PreparedWindows::PreparedWindows(const Source& source, std::vector<Window> windows)
    : source_(source),
      windows_(std::move_iterator(windows.begin()), std::move_iterator(windows.end())) {
  prepare_first();
}

void PreparedWindows::prepare_first() {
  if (done()) return;
  const std::launch policy = source_.on_host ? std::launch::deferred : std::launch::async;
  next_ = std::async(policy, [this, &window = windows_.front(), under = current_interrupt()] {
    const InterruptScope scope(under);
    prepare(source_, window.items, window.replicas.empty() ? source_.window_bytes : 0);
  });
}

PreparedWindows::Window PreparedWindows::next() {
  next_.get();
  Window window = std::move(windows_.front());
  windows_.pop_front();
  Window later = take_postponed(window);
  if (!later.items.empty()) windows_.push_front(std::move(later));
  prepare_first();
  return window;
}

}  // namespace fovea
