#include "serve/media/frame_lists.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "serve/api_error.h"
#include "serve/text/data_url.h"

namespace fovea::serve {
namespace {

void check_count(std::int64_t frames, std::int64_t most, const std::string& param) {
  if (frames <= most) return;
  throw ApiError(
      422, "too_many_frames",
      "expected at most " + std::to_string(most) + " frames, got " + std::to_string(frames), param);
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  for (;;) {
    const std::size_t end = std::min(text.find(','), text.size());
    parts.emplace_back(text.substr(0, end));
    if (end == text.size()) return parts;
    text.remove_prefix(end + 1);
  }
}

/// The frames of a reference as URLs or base64; empty if it does not come frame by frame.
std::vector<std::string> frames_of(MediaReference& reference, std::int64_t max_frames) {
  if (!reference.frames.empty()) {
    check_count(std::ssize(reference.frames), max_frames, reference.param);
    return std::move(reference.frames);
  }
  if (reference.modality != Modality::kVideo || !is_data_url(reference.url)) return {};
  const std::optional<DataUrl> url = parse_data_url(reference.url);
  if (!url || url->type != "video/jpeg") return {};
  check_count(std::ranges::count(url->base64, ',') + 1, max_frames, reference.param);
  return split(url->base64);
}

}  // namespace

FrameLists::FrameLists(std::vector<MediaReference>& references, std::int64_t max_frames) {
  std::vector<MediaReference> all;
  all.reserve(references.size());
  for (MediaReference& reference : references) {
    std::vector<std::string> frames = frames_of(reference, max_frames);
    if (frames.empty()) {
      all.push_back(std::move(reference));
      continue;
    }
    videos_.push_back({.place = all.size(),
                       .num_frames = frames.size(),
                       .fps = reference.fps,
                       .param = reference.param});
    for (std::size_t i = 0; i < frames.size(); ++i) {
      MediaReference frame;
      frame.url = std::move(frames[i]);
      frame.param = reference.param + "[" + std::to_string(i) + "]";
      all.push_back(std::move(frame));
    }
  }
  references = std::move(all);
}

void FrameLists::join(std::vector<MediaItem>& items) const {
  if (videos_.empty()) return;
  std::vector<MediaItem> joined;
  std::size_t next = 0;
  const auto take = [&](std::vector<MediaItem>& to, std::size_t end) {
    for (; next < end; ++next) to.push_back(std::move(items[next]));
  };
  for (const Video& video : videos_) {
    take(joined, video.place);
    std::vector<MediaItem> images;
    take(images, video.place + video.num_frames);
    const auto owner = std::make_shared<const std::vector<MediaItem>>(std::move(images));
    std::vector<std::span<const std::uint8_t>> frames;
    std::ranges::transform(*owner, std::back_inserter(frames), &MediaItem::content);
    joined.push_back(video_frames(std::move(frames), owner, video.param, video.fps));
  }
  take(joined, items.size());
  items = std::move(joined);
}

}  // namespace fovea::serve
