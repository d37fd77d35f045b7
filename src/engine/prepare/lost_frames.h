#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "media/video.h"

namespace fovea {

/// Whether frames are missing that the video was to be encoded from, or its end.
[[nodiscard]] inline bool has_lost_frames(const media::VideoInfo& info) {
  return !info.unreadable.empty() || info.num_cut > 0;
}

/// The line of the log about such a video: which frames are missing, by index and by second, where
/// the container names a rate, as "16,21..39". Runs of frames behind the eighth are counted, not
/// named.
/// @param name of the video. @param num_used frames that it is encoded from.
[[nodiscard]] std::string lost_frames_line(std::string_view name, const media::VideoInfo& info,
                                           std::int64_t num_used);

/// Refuses a video whose end is missing. @throws Error(kCorruptData).
void check_end(std::string_view name, const media::VideoInfo& info);

}  // namespace fovea
