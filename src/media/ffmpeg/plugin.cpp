// The plugin's note and its only symbol.
#include "media/ffmpeg/decoder.h"
#include "media/ffmpeg/handles.h"
#include "media/video_abi.h"

namespace {

[[gnu::section(".note.fovea"), gnu::aligned(4), gnu::used]] constexpr fovea::PluginNote kNote{
    .build = fovea::media::kVideoPluginBuild};

}  // namespace

extern "C" __attribute__((visibility("default"))) const fovea::media::VideoPlugin*
fovea_video_plugin() {
  av_log_set_level(AV_LOG_QUIET);  // complaints come back as errors, not on stderr
  static const fovea::media::VideoPlugin plugin{
      .libraries = LIBAVFORMAT_IDENT ", " LIBAVCODEC_IDENT,
      .decode = &fovea::media::ffmpeg::decode};
  return &plugin;
}
