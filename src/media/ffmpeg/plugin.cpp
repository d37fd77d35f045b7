// The plugin's only symbol.
#include "fovea/version.h"
#include "media/ffmpeg/decoder.h"
#include "media/ffmpeg/handles.h"
#include "media/video_abi.h"

extern "C" __attribute__((visibility("default"))) const fovea::media::VideoPlugin*
fovea_video_plugin() {
  av_log_set_level(AV_LOG_QUIET);  // complaints come back as errors, not on stderr
  static const fovea::media::VideoPlugin plugin{
      .interface_version = fovea::media::kVideoPluginInterface,
      .version = fovea::version(),
      .libraries = LIBAVFORMAT_IDENT ", " LIBAVCODEC_IDENT,
      .decode = &fovea::media::ffmpeg::decode};
  return &plugin;
}
