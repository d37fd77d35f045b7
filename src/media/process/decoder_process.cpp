// One item through a decoder process.
#include "media/process/decoder_process.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/interrupt.h"
#include "media/limits.h"

namespace fovea::media {
namespace {

using namespace std::chrono_literals;

constexpr auto kTimeToStart = 30s;  // a cold disk and a hundred libraries

Error error_of_end(int signal, std::string_view name) {
  if (signal == SIGXCPU) {
    return {ErrorCode::kDeadline, cat(name, ": its decoder process ran out of CPU time")};
  }
  if (signal == SIGKILL || signal == 0) {
    return {ErrorCode::kUnavailable, cat(name, ": its decoder process was ended")};
  }
  return {ErrorCode::kCorruptData, cat(name, ": its decoder process crashed: ", strsignal(signal))};
}

void check_kind(const Reply& reply, ReplyKind wanted, std::string_view name) {
  FOVEA_CHECK(reply.kind == wanted, kCorruptData, name, ": expected reply ",
              static_cast<int>(wanted), " of its decoder process, got ",
              static_cast<int>(reply.kind));
}

}  // namespace

DecoderProcess::DecoderProcess(ChildProcess child) : child_(std::move(child)) {
  constexpr std::string_view kName = "decoder process";
  const Interrupt late({}, Interrupt::Clock::now() + kTimeToStart, kName, current_interrupt());
  const InterruptScope scope(&late);
  isolation_ = receive(ReplyKind::kReady, kName).isolation;
}

Image DecoderProcess::decode_image(const EncodedImage& source, const ImageInfo& info,
                                   const MediaOptions& options, int reduction) {
  ++num_items_;
  ask({.kind = RequestKind::kImage,
       .options = options,
       .reduction = reduction,
       .payload_bytes = source.bytes.size()},
      source.bytes, source.name);
  Image image{
      .width_px = info.width_px, .height_px = info.height_px, .rgb = {}, .margins = info.margins};
  receive_pixels(receive(ReplyKind::kPixels, source.name), image, source.name);
  is_idle_ = true;
  return image;
}

VideoInfo DecoderProcess::decode_video(const EncodedVideo& video, const FrameSampler& sampler,
                                       const MediaOptions& options, const FrameSink& sink) {
  ++num_items_;
  ask({.kind = RequestKind::kVideo, .options = options, .file_bytes = video.file_bytes}, {},
      video.name, video.file);
  VideoInfo info = receive_info(video.name, options.limits);
  info.unreadable = receive_frames(info, sampler(info), video.name, sink);
  if (!info.unreadable.empty()) (void)receive_frames(info, sampler(info), video.name, sink);
  is_idle_ = true;
  return info;
}

std::vector<std::int64_t> DecoderProcess::receive_frames(const VideoInfo& info,
                                                         std::span<const std::int64_t> indices,
                                                         std::string_view name,
                                                         const FrameSink& sink) {
  const std::vector<std::uint8_t> payload = to_payload(indices);
  ask({.kind = RequestKind::kFrames, .payload_bytes = payload.size()}, payload, name);
  Image frame{.width_px = info.width_px, .height_px = info.height_px, .rgb = {}};
  const bool may_lose = info.unreadable.empty();
  for (std::size_t i = 0; i <= indices.size(); ++i) {
    const Reply reply = receive(name);
    if (may_lose && reply.kind == ReplyKind::kVideoInfo) {
      return receive_unreadable(reply, indices, name);
    }
    check_kind(reply, i < indices.size() ? ReplyKind::kPixels : ReplyKind::kDone, name);
    if (i == indices.size()) break;
    receive_pixels(reply, frame, name);
    sink(frame);
  }
  return {};
}

std::vector<std::int64_t> DecoderProcess::receive_unreadable(const Reply& reply,
                                                             std::span<const std::int64_t> indices,
                                                             std::string_view name) {
  const std::uint64_t count = reply.payload_bytes / 8;
  FOVEA_CHECK(count >= 1 && count <= indices.size(), kCorruptData, name,
              ": its decoder process cannot read ", count, " of ", indices.size(), " frames");
  std::vector<std::uint8_t> payload(reply.payload_bytes);
  if (!child_.receive(payload)) fail_after_end(name);
  std::vector<std::int64_t> unreadable = parse_indices(payload);
  FOVEA_CHECK(std::ranges::is_sorted(unreadable) && std::ranges::includes(indices, unreadable),
              kCorruptData, name, ": its decoder process cannot read frames that nobody asked for");
  return unreadable;
}

bool DecoderProcess::is_idle() { return is_idle_ && child_.is_running(); }

bool DecoderProcess::is_worn_out() const noexcept {
  constexpr int kMostItems = 1000;
  return num_items_ >= kMostItems || age_.elapsed_ms() >= kMostItemTime / 1ms;
}

void DecoderProcess::ask(const Request& request, std::span<const std::uint8_t> payload,
                         std::string_view name, int file) {
  is_idle_ = false;
  if (!child_.send(to_header(request), file) || !child_.send(payload)) fail_after_end(name);
}

Reply DecoderProcess::receive(std::string_view name) {
  ReplyHeader header{};
  if (!child_.receive(header)) fail_after_end(name);
  const Reply reply = parse_reply(header, name);
  if (reply.kind == ReplyKind::kError) fail_with(reply, name);
  return reply;
}

Reply DecoderProcess::receive(ReplyKind wanted, std::string_view name) {
  const Reply reply = receive(name);
  check_kind(reply, wanted, name);
  return reply;
}

VideoInfo DecoderProcess::receive_info(std::string_view name, const MediaLimits& limits) {
  const Reply reply = receive(ReplyKind::kVideoInfo, name);
  FOVEA_CHECK(reply.payload_bytes == 0, kCorruptData, name,
              ": its decoder process cannot read frames that nobody asked for");
  check_image_size(reply.width_px, reply.height_px, name, limits);
  VideoInfo info{.num_frames = reply.num_frames,
                 .num_cut = reply.num_cut,
                 .fps = reply.fps,
                 .width_px = reply.width_px,
                 .height_px = reply.height_px,
                 .decode_bytes = frame_bytes(reply.width_px, reply.height_px)};
  FOVEA_CHECK(info.decode_bytes <= limits.max_item_bytes, kCorruptData, name,
              ": its decoder process took a frame of ", info.width_px, " x ", info.height_px,
              " pixels for one within the limits");
  return info;
}

void DecoderProcess::receive_pixels(const Reply& reply, Image& image, std::string_view name) {
  FOVEA_CHECK(reply.width_px == image.width_px && reply.height_px == image.height_px, kCorruptData,
              name, ": expected ", image.width_px, " x ", image.height_px,
              " pixels of its decoder process, got ", reply.width_px, " x ", reply.height_px);
  image.rgb.resize(reply.payload_bytes);
  if (!child_.receive(image.rgb)) fail_after_end(name);
}

void DecoderProcess::fail_with(const Reply& reply, std::string_view name) {
  std::vector<std::uint8_t> text(reply.payload_bytes);
  if (!child_.receive(text)) fail_after_end(name);
  // Out of memory once, its address space may be in pieces: the next item gets a new process.
  is_idle_ = reply.code != ErrorCode::kOutOfMemory;
  const std::string message = printable(text);
  throw Error(reply.code, cat(name, message.starts_with(':') ? "" : ": ", message));
}

void DecoderProcess::fail_after_end(std::string_view name) {
  throw error_of_end(child_.end(), name);
}

}  // namespace fovea::media
