#pragma once

#include "fovea/options.h"
#include "media/video.h"

namespace fovea::media::ffmpeg {

/// Refuses an MP4 or MOV file that says it has so many samples that FFmpeg's index of them would
/// take more memory than max_item_bytes: it is made when such a file is opened, and a number in a
/// header is enough for it. Files of other kinds pass. Reads the headers of boxes alone.
/// @throws Error(kInvalidArgument) with both numbers, Error(kUnsupported) for compressed headers,
/// which old QuickTime files have, Error(kIo) if the file cannot be read, and as check_interrupt.
void check_mp4_samples(const EncodedVideo& video, const MediaLimits& limits);

}  // namespace fovea::media::ffmpeg
