#include "serve/media/frame_lists.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "serve/api_error.h"
#include "serve/text/base64.h"

namespace fovea::serve {
namespace {

void check_count(std::size_t frames, std::size_t most, const char* whose,
                 const std::string& param) {
  if (frames <= most) return;
  throw ApiError(422, "too_many_frames",
                 "expected at most " + std::to_string(most) + " frames" + whose + ", got " +
                     std::to_string(frames),
                 param);
}

/// The base64 of a video that is a data URL of frames; empty if it is none.
std::string_view frames_text(const MediaReference& reference) {
  if (reference.modality != Modality::kVideo || !is_data_url(reference.url)) return {};
  const std::optional<DataUrl> url = parse_data_url(reference.url);
  return url && url->type == "video/jpeg" ? url->base64 : std::string_view();
}

/// Frames of a reference; 0 if it does not come frame by frame.
std::size_t count_frames(const MediaReference& reference) {
  if (!reference.frames.empty()) return reference.frames.size();
  const std::string_view text = frames_text(reference);
  return text.data() == nullptr ? 0 : static_cast<std::size_t>(std::ranges::count(text, ',')) + 1;
}

/// The frames as URLs or base64.
std::vector<std::string_view> frames_of(const MediaReference& reference) {
  if (!reference.frames.empty()) return reference.frames;
  std::vector<std::string_view> parts;
  for (std::string_view text = frames_text(reference);;) {
    const std::size_t end = std::min(text.find(','), text.size());
    parts.push_back(text.substr(0, end));
    if (end == text.size()) return parts;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

bool comes_in_frames(const MediaReference& reference) {
  return !reference.frames.empty() || frames_text(reference).data() != nullptr;
}

FrameLists::FrameLists(std::vector<MediaReference>& references, std::int64_t max_frames) {
  std::size_t all_frames = 0;
  for (const MediaReference& reference : references) {
    const std::size_t frames = count_frames(reference);
    check_count(frames, static_cast<std::size_t>(max_frames), "", reference.param);
    all_frames += frames;
    check_count(all_frames, kMaxRequestFrames, " in a request", reference.param);
  }
  if (all_frames == 0) return;
  std::vector<MediaReference> all;
  all.reserve(references.size() + all_frames);
  for (MediaReference& reference : references) {
    if (count_frames(reference) == 0) {
      all.push_back(std::move(reference));
      continue;
    }
    const std::vector<std::string_view> frames = frames_of(reference);
    videos_.push_back({.place = all.size(),
                       .num_frames = frames.size(),
                       .fps = reference.fps.value_or(kDefaultFps),
                       .mm_processor_kwargs = options_text(reference),
                       .param = reference.param});
    for (std::size_t i = 0; i < frames.size(); ++i) {
      MediaReference frame;
      frame.url = frames[i];
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
  const auto take = [&](std::size_t end) {
    for (; next < end; ++next) joined.push_back(std::move(items[next]));
  };
  for (const Video& video : videos_) {
    take(video.place);
    std::vector<MediaBytes> frames;
    for (; next < video.place + video.num_frames; ++next) {
      frames.push_back(std::get<EncodedBytes>(std::move(items[next].source)).bytes);
    }
    joined.push_back(video_frames(std::move(frames), video.param, video.fps));
    joined.back().mm_processor_kwargs = video.mm_processor_kwargs;
  }
  take(items.size());
  items = std::move(joined);
}

}  // namespace fovea::serve
