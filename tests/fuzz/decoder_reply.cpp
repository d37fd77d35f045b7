// Any bytes as what a decoder process answers: an accepted reply keeps what its members promise.
#include <algorithm>

#include "fuzz.h"
#include "media/process/messages.h"

using fovea::media::Reply;
using fovea::media::ReplyHeader;
using fovea::media::ReplyKind;
using fovea::test::require;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ReplyHeader header{};
  if (size < header.size()) return -1;
  std::copy_n(data, header.size(), header.begin());
  Reply reply;
  if (!fovea::test::accepts([&] { reply = fovea::media::parse_reply(header, "fuzz"); })) return 0;
  if (reply.kind == ReplyKind::kPixels) {
    require(reply.width_px >= 1 && reply.height_px >= 1);
    require(reply.payload_bytes / 3 / static_cast<std::uint64_t>(reply.width_px) ==
            static_cast<std::uint64_t>(reply.height_px));
  } else if (reply.kind == ReplyKind::kVideoInfo) {
    require(reply.num_cut >= 0);
    require(reply.payload_bytes <= 8 * static_cast<std::uint64_t>(reply.num_frames));
  } else {
    require(reply.payload_bytes <= fovea::media::kMaxTextBytes);
  }
  require(fovea::media::to_header(reply) == header);
  const std::string text = fovea::media::printable({data + header.size(), size - header.size()});
  require(std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; }));
  return 0;
}
