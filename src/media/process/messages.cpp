// Messages as bytes, and the checks of what comes back.
#include "media/process/messages.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "core/check.h"

namespace fovea::media {
namespace {

constexpr std::int64_t kMostSidePx = std::numeric_limits<std::int32_t>::max();

bool is_side(std::int64_t side_px) { return side_px >= 1 && side_px <= kMostSidePx; }

/// The rates that a fraction of two 32-bit numbers names; 0: none.
bool is_rate(double fps) { return fps == 0 || (fps > 1e-10 && fps < 1e10); }

bool is_consistent(const Reply& reply) {
  switch (reply.kind) {
    case ReplyKind::kError: return reply.payload_bytes <= kMaxTextBytes;
    case ReplyKind::kReady:
    case ReplyKind::kDone: return reply.payload_bytes == 0;
    case ReplyKind::kVideoInfo:
      return is_side(reply.width_px) && is_side(reply.height_px) && reply.num_frames >= 1 &&
             reply.num_frames <= kMostVideoFrames && reply.num_cut >= 0 &&
             reply.num_cut <= kMostVideoFrames && is_rate(reply.fps) &&
             reply.payload_bytes / 8 <= static_cast<std::uint64_t>(reply.num_frames) &&
             reply.payload_bytes % 8 == 0;
    case ReplyKind::kPixels:
      return is_side(reply.width_px) && is_side(reply.height_px) &&
             reply.payload_bytes / 3 ==
                 static_cast<std::uint64_t>(reply.width_px * reply.height_px) &&
             reply.payload_bytes % 3 == 0;
  }
  return false;
}

}  // namespace

RequestHeader to_header(const Request& request) {
  RequestHeader header{};
  WordWriter words(header);
  words.put(request.kind);
  words.put(request.payload_bytes);
  words.put(request.file_bytes);
  words.put(request.reduction);
  put_options(words, request.options);
  return header;
}

Request parse_request(const RequestHeader& header) {
  WordReader words(header, "decoder process");
  Request request;
  request.kind = words.take_enum(RequestKind::kImage, RequestKind::kFrames, "request");
  request.payload_bytes = words.take();
  request.file_bytes = words.take();
  request.reduction = static_cast<int>(words.take_signed());
  take_options(words, request.options);
  return request;
}

ReplyHeader to_header(const Reply& reply) {
  ReplyHeader header{};
  WordWriter words(header);
  words.put(reply.kind);
  words.put(reply.kind == ReplyKind::kReady ? static_cast<std::uint64_t>(reply.isolation)
                                            : static_cast<std::uint64_t>(reply.code));
  words.put(reply.width_px);
  words.put(reply.height_px);
  words.put(reply.num_frames);
  words.put(reply.num_cut);
  words.put(std::bit_cast<std::uint64_t>(reply.fps));
  words.put(reply.payload_bytes);
  return header;
}

Reply parse_reply(const ReplyHeader& header, std::string_view name) {
  WordReader words(header, name);
  Reply reply;
  reply.kind = words.take_enum(ReplyKind::kReady, ReplyKind::kError, "reply");
  if (reply.kind == ReplyKind::kReady) {
    reply.isolation = words.take_enum(Isolation::kNone, Isolation::kSeccomp, "isolation");
  } else {
    reply.code = words.take_enum(ErrorCode::kInvalidArgument, ErrorCode::kInternal, "error");
  }
  reply.width_px = words.take_signed();
  reply.height_px = words.take_signed();
  reply.num_frames = words.take_signed();
  reply.num_cut = words.take_signed();
  reply.fps = std::bit_cast<double>(words.take());
  reply.payload_bytes = words.take();
  FOVEA_CHECK(is_consistent(reply), kCorruptData, name,
              ": message with its decoder process: reply ", static_cast<int>(reply.kind), " of ",
              reply.width_px, " x ", reply.height_px, " pixels, ", reply.num_frames, " frames at ",
              reply.fps, " per second and ", reply.payload_bytes, " bytes makes no sense");
  return reply;
}

std::vector<std::uint8_t> to_payload(std::span<const std::int64_t> indices) {
  std::vector<std::uint8_t> payload(8 * indices.size());
  WordWriter words(payload);
  for (const std::int64_t index : indices) words.put(index);
  return payload;
}

std::vector<std::int64_t> parse_indices(std::span<const std::uint8_t> payload) {
  std::vector<std::int64_t> indices(payload.size() / 8);
  WordReader words(payload, "decoder process");
  for (std::int64_t& index : indices) index = words.take_signed();
  return indices;
}

std::string printable(std::span<const std::uint8_t> text) {
  std::string result(text.begin(), text.end());
  std::ranges::replace_if(
      result, [](char c) { return c < ' ' || c > '~'; }, '?');
  return result;
}

}  // namespace fovea::media
