#pragma once

#include <chrono>
#include <string_view>

#include "core/stopwatch.h"
#include "media/formats/decoders.h"
#include "media/process/child_process.h"
#include "media/process/messages.h"
#include "media/video.h"

namespace fovea::media {

/// An item that takes longer is given up, with or without a deadline of the caller.
inline constexpr std::chrono::minutes kMostItemTime{60};

/// The host's side of a conversation with a decoder process, which it takes to be hostile: what is
/// received must be what the host can tell from the header of the file, or within the limits. If a
/// function throws, is_idle() says whether the process can be asked again.
class DecoderProcess {
 public:
  /// Waits until it is ready.
  /// @throws Error(kUnavailable) if it ends instead, Error(kDeadline) if that takes too long.
  explicit DecoderProcess(ChildProcess child);

  /// As media::decode_image. @param info as probe_image gave it for this reduction.
  /// @throws besides what the process throws: as check_interrupt; where the process ends instead of
  /// answering, Error(kDeadline) for lack of CPU time, Error(kUnavailable) if it was killed,
  /// Error(kCorruptData) after a crash; Error(kCorruptData) for an answer that makes no sense.
  [[nodiscard]] Image decode_image(const EncodedImage& source, const ImageInfo& info,
                                   const MediaOptions& options, int reduction);

  /// As media::decode_video. @param video in a file. @throws as decode_image.
  VideoInfo decode_video(const EncodedVideo& video, const FrameSampler& sampler,
                         const MediaOptions& options, const FrameSink& sink);

  /// Whether it can be asked: it runs, and the last conversation came to its end.
  [[nodiscard]] bool is_idle();
  /// Whether it has done enough to make room for another: what libraries leak stays bounded, and
  /// so does the CPU time left to an item.
  [[nodiscard]] bool is_worn_out() const noexcept;
  [[nodiscard]] Isolation isolation() const noexcept { return isolation_; }

 private:
  void ask(const Request& request, std::span<const std::uint8_t> payload, std::string_view name,
           int file = -1);
  /// The next reply, whatever its kind. @throws what a kError says.
  [[nodiscard]] Reply receive(std::string_view name);
  /// The next reply, of the kind wanted. @throws as above.
  [[nodiscard]] Reply receive(ReplyKind wanted, std::string_view name);
  /// A process's description of a video, within the limits.
  [[nodiscard]] VideoInfo receive_info(std::string_view name, const MediaLimits& limits);
  /// Asks for frames and hands them on. @return those that cannot be read, if there are any: the
  /// process waits for another choice then, unless it has had one, and the others do not count.
  [[nodiscard]] std::vector<std::int64_t> receive_frames(const VideoInfo& info,
                                                         std::span<const std::int64_t> indices,
                                                         std::string_view name,
                                                         const FrameSink& sink);
  /// Those of `indices` that the process names after `reply`.
  [[nodiscard]] std::vector<std::int64_t> receive_unreadable(const Reply& reply,
                                                             std::span<const std::int64_t> indices,
                                                             std::string_view name);
  /// Pixels of the size of `image`, into it. @param reply that announces them.
  void receive_pixels(const Reply& reply, Image& image, std::string_view name);
  [[noreturn]] void fail_with(const Reply& reply, std::string_view name);
  [[noreturn]] void fail_after_end(std::string_view name);

  ChildProcess child_;
  Isolation isolation_ = Isolation::kNone;
  bool is_idle_ = true;
  int num_items_ = 0;
  Stopwatch age_;
};

}  // namespace fovea::media
