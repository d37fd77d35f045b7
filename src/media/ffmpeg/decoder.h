#pragma once

#include "core/interrupt.h"
#include "media/video.h"

namespace fovea::media::ffmpeg {

/// Body of media::decode_video. @param interrupt that the thread works under meanwhile; may be
/// null.
VideoInfo decode(const EncodedVideo& video, const FrameSampler& sampler, const MediaLimits& limits,
                 const FrameSink& sink, const Interrupt* interrupt);

}  // namespace fovea::media::ffmpeg
