// One window ahead of the tower.
#include "engine/prepared_windows.h"

namespace fovea {

PreparedWindows::PreparedWindows(const Source& source, std::span<const MediaItem> media)
    : source_(source), media_(media) {
  if (!done()) next_ = prepare(0);
}

std::future<std::vector<PreparedMedia>> PreparedWindows::prepare(std::size_t begin) const {
  const std::span<const MediaItem> window = media_.subspan(
      begin, window_items(source_.on_host, source_.num_replicas, begin, media_.size()));
  const std::launch policy = source_.on_host ? std::launch::deferred : std::launch::async;
  return std::async(policy, [window, source = source_] {
    return prepare_all(source.model, window, source.options, source.pool);
  });
}

PreparedWindows::Window PreparedWindows::next() {
  std::vector<PreparedMedia> prepared = next_.get();
  const std::span<const MediaItem> media = media_.subspan(begin_, prepared.size());
  begin_ += prepared.size();
  if (!done()) next_ = prepare(begin_);
  return {media, std::move(prepared)};
}

}  // namespace fovea
