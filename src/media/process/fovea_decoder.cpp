// fovea-decoder KIND HOST_PID ADDRESS_BYTES CPU_SECONDS: decodes what it is sent on its standard
// input, a socket, until the other side hangs up. Started by media/process/child_process.cpp.
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <new>
#include <string_view>

#include "core/check.h"
#include "media/decode_image.h"
#include "media/plugins/image_plugins.h"
#include "media/process/host_socket.h"
#include "media/process/sandbox.h"
#include "media/video.h"

namespace fovea::media {
namespace {

[[gnu::section(".note.fovea"), gnu::aligned(4), gnu::used]] constexpr PluginNote kNote{
    .build = kDecoderBuild};

/// The part of a video that the host asks for.
std::vector<std::int64_t> ask_for_frames(const VideoInfo& info) {
  send_indices({.kind = ReplyKind::kVideoInfo,
                .width_px = info.width_px,
                .height_px = info.height_px,
                .num_frames = info.num_frames,
                .num_cut = info.num_cut,
                .fps = info.fps},
               info.unreadable);
  return parse_indices(receive_payload(receive_request().request));
}

/// Answers one request. Names are the host's business. @param file of a video.
void serve(const Request& request, int file) try {
  if (request.kind == RequestKind::kImage) {
    send_pixels(decode_image(receive_payload(request), "", request.options, request.reduction));
    return;
  }
  decode_video({.file = file, .file_bytes = request.file_bytes}, &ask_for_frames,
               request.options.limits, &send_pixels);
  send_reply({.kind = ReplyKind::kDone});
} catch (const Error& error) {
  send_text({.kind = ReplyKind::kError, .code = error.code()}, error.what());
} catch (const std::bad_alloc&) {
  send_text({.kind = ReplyKind::kError, .code = ErrorCode::kOutOfMemory}, ": out of memory");
}

std::uint64_t number(std::string_view text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

[[noreturn]] void run(const char* const* arguments) {
  if (std::string_view(arguments[0]) == "video")
    (void)video_status();  // loads the plugin
  else
    load_image_plugins();
  const Isolation isolation = enter_sandbox({.address_bytes = number(arguments[2]),
                                             .cpu_seconds = number(arguments[3]),
                                             .host_pid = static_cast<int>(number(arguments[1]))});
  send_reply({.kind = ReplyKind::kReady, .isolation = isolation});
  while (true) {
    const auto [request, file] = receive_request();
    serve(request, file.get());
  }
}

}  // namespace
}  // namespace fovea::media

int main(int argc, char** argv) {
  constexpr int kUsage = 2;
  if (argc != 5) {
    std::fputs("fovea-decoder is a part of Fovea, which starts it\n", stderr);
    return kUsage;
  }
  fovea::media::run(argv + 1);
}
