// FFmpeg shares one reference count between all that hold a frame: an owner around its first buffer
// sees when the last of them is gone.
#include "media/ffmpeg/frame_memory.h"

#include <new>

namespace fovea::media::ffmpeg {

namespace {

constexpr int kRowAlignmentBytes = 64;

}  // namespace

struct FrameMemory::Held {
  FrameMemory* memory;
  AVBufferRef* buffer;
  std::size_t bytes;
};

void FrameMemory::watch(AVCodecContext& codec) {
  codec.opaque = this;
  codec.get_buffer2 = &FrameMemory::allocate;
}

int FrameMemory::allocate(AVCodecContext* codec, AVFrame* frame, int flags) noexcept {
  auto& memory = *static_cast<FrameMemory*>(codec->opaque);
  const int size = av_image_get_buffer_size(static_cast<AVPixelFormat>(frame->format), frame->width,
                                            frame->height, kRowAlignmentBytes);
  if (size < 0) return size;
  const auto bytes = static_cast<std::size_t>(size);
  if (bytes > memory.max_bytes_ - memory.held_bytes_) {
    memory.is_exceeded_ = true;
    return AVERROR(ENOMEM);
  }
  const int done = avcodec_default_get_buffer2(codec, frame, flags);
  return done < 0 ? done : memory.count(*frame, bytes);
}

int FrameMemory::count(AVFrame& frame, std::size_t bytes) noexcept {
  AVBufferRef* const buffer = frame.buf[0];
  auto* const held = new (std::nothrow) Held{this, buffer, bytes};
  AVBufferRef* const counted =
      held == nullptr ? nullptr : av_buffer_create(buffer->data, buffer->size, &release, held, 0);
  if (counted == nullptr) {
    delete held;
    av_frame_unref(&frame);
    return AVERROR(ENOMEM);
  }
  held_bytes_ += bytes;
  frame.buf[0] = counted;
  return 0;
}

void FrameMemory::release(void* opaque, std::uint8_t*) noexcept {
  auto* const held = static_cast<Held*>(opaque);
  held->memory->held_bytes_ -= held->bytes;
  av_buffer_unref(&held->buffer);
  delete held;
}

}  // namespace fovea::media::ffmpeg
