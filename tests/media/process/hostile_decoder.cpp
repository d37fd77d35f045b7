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

}  // namespace
}  // namespace fovea::media

int main() {
  using namespace fovea::media;
  send_reply({.kind = ReplyKind::kReady});
  while (true) {
    const Request request = receive_request().request;
    answer(receive_payload(request));
  }
}
