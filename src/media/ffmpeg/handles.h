#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/avstring.h>
#include <libavutil/display.h>
#include <libavutil/imgutils.h>
#include <libswscale/swscale.h>
}

#include <memory>

namespace fovea::media::ffmpeg {

/// Owners of FFmpeg's objects; each frees through a pointer to the pointer.
template <auto Free>
struct FreeByAddress {
  template <class T>
  void operator()(T* object) const noexcept {
    Free(&object);
  }
};

using Packet = std::unique_ptr<AVPacket, FreeByAddress<av_packet_free>>;
using Frame = std::unique_ptr<AVFrame, FreeByAddress<av_frame_free>>;
using CodecContext = std::unique_ptr<AVCodecContext, FreeByAddress<avcodec_free_context>>;
using FormatContext = std::unique_ptr<AVFormatContext, FreeByAddress<avformat_close_input>>;

struct FreeScaler {
  void operator()(SwsContext* scaler) const noexcept { sws_freeContext(scaler); }
};
using Scaler = std::unique_ptr<SwsContext, FreeScaler>;

/// An I/O context owns a buffer that FFmpeg may have replaced.
struct FreeIo {
  void operator()(AVIOContext* io) const noexcept {
    av_freep(&io->buffer);
    avio_context_free(&io);
  }
};
using Io = std::unique_ptr<AVIOContext, FreeIo>;

}  // namespace fovea::media::ffmpeg
