// One window ahead of the tower.
#include "engine/prepared_windows.h"

#include <iterator>
#include <utility>

#include "core/interrupt.h"

namespace fovea {

namespace {

/// Takes the postponed items out of a window without replicas.
CallWindow take_postponed(PreparedWindows::Window& window) {
  CallWindow later;
  std::vector<std::size_t> items;
  for (std::size_t i = 0; i < window.prepared.size(); ++i) {
    (window.prepared[i].postponed ? later.items : items).push_back(window.call.items[i]);
  }
  std::erase_if(window.prepared, [](const PreparedMedia& media) { return media.postponed; });
  if (!later.items.empty()) window.call.items = std::move(items);
  return later;
}

}  // namespace

PreparedWindows::PreparedWindows(const Source& source, ItemView media,
                                 std::vector<CallWindow> windows)
    : source_(source),
      media_(media),
      windows_(std::move_iterator(windows.begin()), std::move_iterator(windows.end())) {
  prepare_first();
}

void PreparedWindows::prepare_first() {
  if (done()) return;
  const std::launch policy = source_.on_host ? std::launch::deferred : std::launch::async;
  const CallWindow& window = windows_.front();
  const std::size_t most_bytes = window.replicas.empty() ? source_.window_bytes : 0;
  next_ = std::async(policy, [items = std::span<const std::size_t>(window.items), most_bytes,
                              media = media_, source = source_, under = current_interrupt()] {
    const InterruptScope scope(under);
    return prepare_some(source.context, media, items, source.pool, most_bytes);
  });
}

PreparedWindows::Window PreparedWindows::next() {
  std::vector<PreparedMedia> prepared = next_.get();
  Window window{std::move(windows_.front()), std::move(prepared)};
  windows_.pop_front();
  CallWindow later = take_postponed(window);
  if (!later.items.empty()) windows_.push_front(std::move(later));
  prepare_first();
  return window;
}

}  // namespace fovea
