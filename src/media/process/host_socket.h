#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/file_descriptor.h"
#include "media/image.h"
#include "media/process/messages.h"

// The decoder's side of the socket, which is its standard input. All of these functions block, and
// end the process if the host has hung up: nothing is left to do then.

namespace fovea::media {

/// Sends a reply that has no payload.
void send_reply(const Reply& reply);
/// Sends a reply with indices of frames.
void send_indices(Reply reply, std::span<const std::int64_t> indices);
/// Sends a reply with a text, cut to kMaxTextBytes.
void send_text(Reply reply, std::string_view text);
void send_pixels(const Image& image);

struct Received {
  Request request;
  FileDescriptor file;  ///< that came with it, if there is one
};

[[nodiscard]] Received receive_request();
[[nodiscard]] std::vector<std::uint8_t> receive_payload(const Request& request);

}  // namespace fovea::media
