// A decoder that does what the last byte of a file says. Answers all others with grey pixels.
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "media/decode_image.h"
#include "media/process/host_socket.h"

namespace fovea::media {
namespace {

void send_grey(std::int64_t width_px, std::int64_t height_px) {
  const auto bytes = static_cast<std::size_t>(3 * width_px * height_px);
  send_pixels({width_px, height_px, std::vector<std::uint8_t>(bytes, 128)});
}

void answer(const std::vector<std::uint8_t>& file) {
  const ImageInfo info = probe_image(file, "", {});
  switch (file.back()) {
    case 'a': std::abort();
    case 'k': raise(SIGKILL); break;
    case 'x': std::exit(0);
    case 'h': pause(); break;
    case 'c': raise(SIGXCPU); break;
    case 's': send_grey(info.width_px + 1, info.height_px); break;
    case 'p':
      send_reply({.kind = ReplyKind::kPixels,
                  .width_px = info.width_px,
                  .height_px = info.height_px,
                  .payload_bytes = static_cast<std::uint64_t>(3 * info.width_px * info.height_px)});
      std::exit(0);
    case 'g': send_reply({.kind = static_cast<ReplyKind>(77)}); break;
    case 'd': send_reply({.kind = ReplyKind::kDone}); break;
    case 'e':
      send_text({.kind = ReplyKind::kError, .code = ErrorCode::kUnsupported}, ": \x1b[2Jno\n");
      break;
    case 'm':
      send_text({.kind = ReplyKind::kError, .code = ErrorCode::kOutOfMemory}, ": no memory");
      break;
    default: send_grey(info.width_px, info.height_px);
  }
}

/// What cannot be read of the frames 0, 1 and 2.
std::vector<std::int64_t> lost_frames(char order) {
  switch (order) {
    case 'f': return {1, 7};
    case 'o': return {2, 1};
    case 'z': return {};
    default: return {1};
  }
}

/// Claims a video of 3 frames of 4 x 2 pixels, or what the last byte says.
void answer_video(const Request& request, int file) {
  char order = 0;
  (void)pread(file, &order, 1, static_cast<off_t>(request.file_bytes) - 1);
  Reply info{.kind = ReplyKind::kVideoInfo, .width_px = 4, .height_px = 2, .num_frames = 3};
  if (order == 'w') info.width_px = 70'000;
  if (order == 'n') info.num_frames = 2'000'000;
  if (order == 'l') info.width_px = info.height_px = 10'000;
  if (order == 'b') return send_indices(info, std::vector<std::int64_t>{0});
  send_reply(info);
  std::vector<std::int64_t> indices = parse_indices(receive_payload(receive_request().request));
  if (std::string_view("uforz").find(order) != std::string_view::npos) {
    send_indices(info, lost_frames(order));
    indices = parse_indices(receive_payload(receive_request().request));
    if (order == 'r') return send_indices(info, lost_frames('u'));
  }
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (order == 'k' && i == 1) raise(SIGKILL);
    send_grey(order == 's' && i == 1 ? 5 : 4, 2);
  }
  if (order == 'm') send_grey(4, 2);
  send_reply({.kind = ReplyKind::kDone});
}

}  // namespace
}  // namespace fovea::media

int main() {
  using namespace fovea::media;
  send_reply({.kind = ReplyKind::kReady});
  while (true) {
    const auto [request, file] = receive_request();
    if (request.kind == RequestKind::kImage) {
      answer(receive_payload(request));
    } else {
      answer_video(request, file.get());
    }
  }
}
