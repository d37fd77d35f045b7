// One window ahead of the tower.
#include "engine/prepared_windows.h"

#include "core/interrupt.h"

namespace fovea {

PreparedWindows::PreparedWindows(const Source& source, std::span<const MediaItem> media,
                                 std::span<const CallWindow> windows)
    : source_(source), media_(media), windows_(windows) {
  prepare_first();
}

void PreparedWindows::prepare_first() {
  if (done()) return;
  const std::launch policy = source_.on_host ? std::launch::deferred : std::launch::async;
  const std::span<const std::size_t> items = windows_.front().items;
  next_ =
      std::async(policy, [items, media = media_, source = source_, under = current_interrupt()] {
        const InterruptScope scope(under);
        return prepare_some(source.context, media, items, source.pool);
      });
}

PreparedWindows::Window PreparedWindows::next() {
  Window window{windows_.front(), next_.get()};
  windows_ = windows_.subspan(1);
  prepare_first();
  return window;
}

}  // namespace fovea
