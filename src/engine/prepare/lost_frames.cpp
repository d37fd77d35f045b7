// Frames that a video was to be encoded from, in few words.
#include "engine/prepare/lost_frames.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "core/check.h"

namespace fovea {

namespace {

/// Frames without a gap among those that were chosen.
struct Run {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

std::vector<Run> runs_of(const media::VideoInfo& info) {
  std::vector<Run> runs;
  for (const std::int64_t index : info.unreadable) {
    if (!runs.empty() && index == runs.back().last + 1) {
      runs.back().last = index;
    } else {
      runs.push_back({index, index});
    }
  }
  if (info.num_cut > 0) runs.push_back({info.num_frames, info.num_frames + info.num_cut - 1});
  return runs;
}

/// @param value of a frame, as it is to be read.
std::string list(const std::vector<Run>& runs,
                 const std::function<std::string(std::int64_t)>& value) {
  constexpr std::size_t kNamed = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(runs.size(), kNamed); ++i) {
    if (i > 0) text += ",";
    text += value(runs[i].first);
    if (runs[i].last > runs[i].first) text += ".." + value(runs[i].last);
  }
  if (runs.size() > kNamed) text += cat(",and ", runs.size() - kNamed, " more");
  return text;
}

}  // namespace

std::string lost_frames_line(std::string_view name, const media::VideoInfo& info,
                             std::int64_t num_used) {
  const std::vector<Run> runs = runs_of(info);
  std::string line = cat("video.frames_lost item=\"", name, "\" frames=\"",
                         list(runs, [](std::int64_t index) { return cat(index); }), "\"");
  if (info.fps > 0) {
    const auto second = [&](std::int64_t index) {
      return cat(static_cast<double>(index) / info.fps);
    };
    line += cat(" seconds=\"", list(runs, second), "\"");
  }
  return line + cat(" used=", num_used, " of=", info.num_frames + info.num_cut);
}

void check_end(std::string_view name, const media::VideoInfo& info) {
  FOVEA_CHECK(info.num_cut == 0, kCorruptData, name, ": expected ", info.num_frames + info.num_cut,
              " frames by the duration in its header, found ", info.num_frames);
}

}  // namespace fovea
