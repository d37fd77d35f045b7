#include "serve/http/reply_stream.h"

#include <utility>

namespace fovea::serve {

bool ReplyStream::put(std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  if (is_closed_) return false;
  was_full_ = bytes_.size() >= capacity_;
  if (was_full_) return false;
  bytes_ += bytes;
  if (changed_) changed_();
  return true;
}

bool ReplyStream::put_last(std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  if (is_closed_) return false;
  bytes_ += bytes;
  return true;
}

void ReplyStream::end(bool is_whole) noexcept {
  const std::lock_guard lock(mutex_);
  has_ended_ = true;
  is_whole_ = is_whole;
  if (changed_) changed_();
}

bool ReplyStream::is_closed() const noexcept {
  const std::lock_guard lock(mutex_);
  return is_closed_;
}

std::shared_ptr<ReplyStream> ReplyStream::reading_end(const std::shared_ptr<ReplyStream>& stream) {
  return {stream.get(), [stream](ReplyStream* end) { end->close(); }};
}

void ReplyStream::on_change(std::function<void()> changed) {
  const std::lock_guard lock(mutex_);
  if (!is_closed_) changed_ = std::move(changed);
}

ReplyStream::Piece ReplyStream::take() {
  Piece piece;
  bool has_room = false;
  {
    const std::lock_guard lock(mutex_);
    piece = {.bytes = std::exchange(bytes_, {}), .has_ended = has_ended_, .is_whole = is_whole_};
    has_room = std::exchange(was_full_, false);
  }
  if (has_room) told_(true);
  return piece;
}

void ReplyStream::close() noexcept {
  {
    const std::lock_guard lock(mutex_);
    changed_ = nullptr;
    bytes_ = {};
    if (std::exchange(is_closed_, true) || has_ended_) return;
  }
  told_(false);
}

}  // namespace fovea::serve
