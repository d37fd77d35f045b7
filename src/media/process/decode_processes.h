#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "fovea/options.h"
#include "media/decode_image.h"
#include "media/image.h"
#include "media/process/messages.h"
#include "media/video.h"

namespace fovea::media {

/// Decodes as media::decode_image and media::decode_video do, in processes of their own: code that
/// an image has taken over, that crashes, hangs or takes all memory costs this item and its
/// process, which is replaced. Headers of images are read by the caller; videos are read by the
/// others, one frame ahead of the sink. Thread-safe: callers that find all processes busy wait in
/// order of arrival.
class DecodeProcesses {
 public:
  /// Starts nothing: processes start when they are needed.
  /// @param count most processes for images at a time, and as many for videos, >= 1.
  /// @param program file of the decoder.
  /// @throws Error(kInvalidArgument) for other numbers.
  DecodeProcesses(int count, const MediaOptions& options, const std::string& program);
  /// Ends the processes. No call may be running.
  ~DecodeProcesses();
  DecodeProcesses(const DecodeProcesses&) = delete;
  DecodeProcesses& operator=(const DecodeProcesses&) = delete;

  /// @param info of these bytes, as probe_image gave it for this reduction: the process has to
  /// answer with pixels of this size.
  /// @throws as media::decode_image with the same messages, and as DecoderProcess::decode_image,
  /// Error(kUnavailable) if no process can be started.
  [[nodiscard]] Image decode_image(std::span<const std::uint8_t> bytes, std::string_view name,
                                   const ImageInfo& info, int reduction = 1);

  /// @throws as media::decode_video, and as above. Exceptions of `sampler` and `sink` end the call.
  VideoInfo decode_video(const EncodedVideo& video, const FrameSampler& sampler,
                         const FrameSink& sink);

  /// How the processes are kept apart; starts one if there is none. @throws as decode_image.
  [[nodiscard]] Isolation isolation();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// For EngineOptions::decode_processes: null for 0.
/// @throws as the constructor, Error(kNotFound) if there is no decoder that may run.
[[nodiscard]] std::unique_ptr<DecodeProcesses> make_decode_processes(int count,
                                                                     const MediaOptions& options);

/// Path of the decoder and its isolation, or why it cannot be used; for `fovea env`.
[[nodiscard]] std::string decoder_status();

}  // namespace fovea::media
