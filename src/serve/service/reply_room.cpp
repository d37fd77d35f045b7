// Room for a reply: for all of it before anything is decoded, or as soon as an item tells its rows.
#include "serve/service/reply_room.h"

#include <algorithm>
#include <string>

#include "serve/api_error.h"

namespace fovea::serve {
namespace {

/// What a reply may take whose rows no header tells: those of a video in a container.
constexpr std::size_t kUnknownReplyBytes = std::size_t{64} << 20;

/// Images of a pixel or two are broken more often than meant.
void check_size(const ItemInfo& info, const MediaItem& item) {
  constexpr std::int64_t kMinSidePx = 3;
  if (info.source_width_px == 0 && info.source_height_px == 0) return;  // pixel values
  if (std::min(info.source_width_px, info.source_height_px) >= kMinSidePx) return;
  throw ApiError(422, "image_too_small",
                 item.name + ": expected sides of at least " + std::to_string(kMinSidePx) +
                     " pixels, got " + std::to_string(info.source_width_px) + " x " +
                     std::to_string(info.source_height_px),
                 item.name);
}

}  // namespace

ReplyRoom::ReplyRoom(Budget& budget, double row_bytes, std::span<const PlannedItem> items)
    : row_bytes_(row_bytes) {
  for (const PlannedItem& item : items) {
    if (const std::optional<ItemInfo> info = item.info()) {
      check_size(*info, item.media());
      wanted_ += static_cast<std::size_t>(static_cast<double>(info->rows) * row_bytes_);
      continue;
    }
    is_estimate_ = true;
    std::size_t& estimate = taken_[&item.media()];
    if (item.media().modality == Modality::kVideo) estimate = kUnknownReplyBytes;
    wanted_ += estimate;
  }
  ticket_ = budget.try_take(wanted_);
}

bool ReplyRoom::take(const MediaItem& item, std::int64_t rows) {
  const auto bytes = static_cast<std::size_t>(static_cast<double>(rows) * row_bytes_);
  const std::lock_guard lock(mutex_);
  std::size_t& taken = taken_[&item];
  if (!ticket_) return false;
  if (bytes <= taken) {
    ticket_->shrink(taken - bytes);
  } else if (!ticket_->try_grow(bytes - taken)) {
    wanted_ = ticket_->bytes() - taken + bytes;
    is_refused_ = true;
    return false;
  }
  taken = bytes;
  return true;
}

bool ReplyRoom::is_refused() const {
  const std::lock_guard lock(mutex_);
  return is_refused_ || !ticket_;
}

std::size_t ReplyRoom::wanted() const {
  const std::lock_guard lock(mutex_);
  return wanted_;
}

}  // namespace fovea::serve
