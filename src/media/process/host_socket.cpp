// Blocking reads and writes with three system calls.
#include "media/process/host_socket.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>

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
  iovec part{header.data(), header.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t received = recvmsg(kSocket, &message, MSG_WAITALL);
  if (received != static_cast<ssize_t>(header.size())) leave();
  Received result{.request = parse_request(header)};
  const cmsghdr* const rights = CMSG_FIRSTHDR(&message);
  if (rights != nullptr) std::memcpy(&result.file, CMSG_DATA(rights), sizeof(int));
  return result;
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
