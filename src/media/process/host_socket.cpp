// Blocking reads and writes with three system calls.
#include "media/process/host_socket.h"

#include <sys/socket.h>
#include <unistd.h>

#include <span>
#include <utility>

#include "core/local_socket.h"

namespace fovea::media {
namespace {

constexpr int kSocket = STDIN_FILENO;

[[noreturn]] void leave() { _exit(0); }

void send(std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = write(kSocket, bytes.data(), bytes.size());
    if (sent <= 0) leave();
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
}

}  // namespace

void send_reply(const Reply& reply) { send(to_header(reply)); }

void send_indices(Reply reply, std::span<const std::int64_t> indices) {
  const std::vector<std::uint8_t> payload = to_payload(indices);
  reply.payload_bytes = payload.size();
  send_reply(reply);
  send(payload);
}

void send_text(Reply reply, std::string_view text) {
  text = text.substr(0, kMaxTextBytes);
  reply.payload_bytes = text.size();
  send_reply(reply);
  send({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

void send_pixels(const Image& image) {
  send_reply({.kind = ReplyKind::kPixels,
              .width_px = image.width_px,
              .height_px = image.height_px,
              .payload_bytes = image.rgb.size()});
  send(image.rgb);
}

Received receive_request() {
  RequestHeader header{};
  FileDescriptor file;
  const ssize_t received =
      receive_some(kSocket, std::as_writable_bytes(std::span(header)), &file, MSG_WAITALL);
  if (received != static_cast<ssize_t>(header.size())) leave();
  return {.request = parse_request(header), .file = std::move(file)};
}

std::vector<std::uint8_t> receive_payload(const Request& request) {
  std::vector<std::uint8_t> payload(request.payload_bytes);
  for (std::span<std::uint8_t> rest = payload; !rest.empty();) {
    const ssize_t received = read(kSocket, rest.data(), rest.size());
    if (received <= 0) leave();
    rest = rest.subspan(static_cast<std::size_t>(received));
  }
  return payload;
}

}  // namespace fovea::media
