#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "serve/http/server.h"

namespace fovea::serve {

/// For whom admin routes are open where there is no admin key.
enum class OpenAdmin : std::uint8_t {
  kNobody,
  kLoopback,  ///< who reaches a loopback address, directly and by a name of it
  kOwnUser,   ///< processes of the server's user and of root on a unix socket
};

/// The clients to whom admin routes are open, for a server that listens there.
[[nodiscard]] OpenAdmin open_admin(const HttpOptions& http);

/// Why a request without an admin key is refused: a clause that begins with "because", "" if it is
/// not. A proxy lets others in, and a web page may reach a loopback address under a name of its
/// own.
[[nodiscard]] std::string objection_to(const RequestHead& head, OpenAdmin open);

/// Whether a web page of another host has sent the request: it has an Origin that is not its Host.
/// Source: RFC 6454, section 7.
[[nodiscard]] bool has_foreign_origin(const Headers& headers);

/// Whether a value of Host means this machine to every resolver: "localhost", an address of
/// 127.0.0.0/8 or [::1], with or without a port.
[[nodiscard]] bool names_loopback(std::string_view host);

}  // namespace fovea::serve
